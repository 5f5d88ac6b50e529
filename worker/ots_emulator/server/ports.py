"""HTTP listeners: the data port for clients, the admin port for tests and for the person who runs the emulator."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.server.application import AnswerCut, Application
from ots_emulator.server.auth import body_too_large
from ots_emulator.server.descriptors import LastDescriptor
from ots_tunnel.errors import ConnectionLost
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse

_log = logging.getLogger(__name__)

#: Seconds that a stop waits for calls under way.
_STOP_SECONDS = 2.0
#: Seconds an idle connection stays open; own design. Whoever closes it while a request is under way breaks the request,
#: and only the client knows when none is: so the client closes. The system's keep-alive finds clients that vanished.
KEEPALIVE: Final = 86_400.0
#: Bytes of a refused body that are read and dropped. Some clients take an answer that comes before they have sent
#: everything for a broken connection: the vendor's Java SDK does so now and then.
_DROPPED_BYTES: Final = 64 << 20


#: Errors of a port; others are those of the host.
_OF_PORTS: Final = frozenset({errno.EADDRINUSE, errno.EACCES})


class AddressUnusable(OSError):
    """An address cannot be listened on; `argument` is that of `Emulator` which is the cause, a host or a port."""

    def __init__(self, prefix: str, host: str, port: int, error: OSError) -> None:
        # asyncio's text repeats the address; a name that is not found has a negative number.
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror or str(error)
        super().__init__(error.errno, f"cannot listen on {host}:{port}: {reason}")
        self.argument = prefix + ("port" if number in _OF_PORTS else "host")


@dataclass(slots=True)
class Listener:
    """A listening port."""

    runner: web.ServerRunner | web.AppRunner
    host: str
    port: int

    @property
    def url(self) -> str:
        """Its URL without trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def stop(self) -> None:
        """Finish calls under way and close the port."""
        await self.runner.cleanup()


async def listen(runner: web.ServerRunner | web.AppRunner, host: str, port: int) -> Listener:
    """Start listening; port 0 chooses a free one.

    Raises:
        OSError: the address cannot be used.
    """
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError:
        await runner.cleanup()
        raise
    # Clients cannot connect to a wildcard address.
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return Listener(runner, shown, runner.addresses[0][1])


async def serve_data(application: Application, host: str, port: int, descriptors: LastDescriptor) -> Listener:
    """Serve the data port."""
    server = _DataServer(application, descriptors)
    return await listen(web.ServerRunner(server, shutdown_timeout=_STOP_SECONDS), host, port)


class _DataServer(web.Server):
    def __init__(self, application: Application, descriptors: LastDescriptor) -> None:
        super().__init__(data_handler(application), keepalive_timeout=KEEPALIVE)
        self.application = application
        self._descriptors = descriptors

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, self.application, keepalive_timeout=KEEPALIVE)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Register a connection."""
        super().connection_made(handler, transport)
        self._descriptors.connected(transport)


class _Connection(web.RequestHandler):
    """Answers in the service's format also where the request is not valid HTTP."""

    __slots__ = ("_application",)

    def __init__(self, manager: _DataServer, application: Application, **options: Any) -> None:
        super().__init__(manager, loop=asyncio.get_running_loop(), **options)
        self._application = application

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Refuse malformed HTTP without a traceback; an error of the emulator is logged with one."""
        if status < 500:
            first, *_ = (message or "unreadable").splitlines() or [""]
            _log.info("malformed request", extra={"action": "malformed_request", "reason": first})
            refusal = Refusal("OTSParameterInvalid", f"Malformed HTTP request: {first}")
        else:
            _log.error("answer failed", extra={"action": "answer_failed"}, exc_info=exc)
            refusal = Refusal("OTSInternalServerError", "Internal server error.")
        response = _response(self._application.refuse(request.path, request.headers, refusal))
        response.force_close()
        return response

    async def _drain_helper(self) -> None:
        """Wait until the client takes more of an answer.

        Raises:
            ConnectionError: it has closed the connection.
        """
        try:
            await super()._drain_helper()
        except ConnectionError as error:
            raise _without_frames(error) from None

    def log_exception(self, *texts: Any, **options: Any) -> None:
        """Log unexpected errors; the unread rest of a broken body is expected."""
        if not isinstance(options.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*texts, **options)


def data_handler(application: Application) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    """Return the function that turns HTTP into calls; one write carries headers and body (docs/data-plane.md 1.9)."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if request.method != "POST":
            text = "Only POST method for requests is supported."
            answer = application.refuse(path, request.headers, Refusal("OTSMethodNotAllowed", text))
        else:
            try:
                body = await _body(request, application.settings.body_limit)
                answer = await application.handle(HttpRequest(path, request.headers, body))
            except Refusal as refusal:
                answer = application.refuse(path, request.headers, refusal)
            except AnswerCut as cut:
                await _send_half(request, cut.answer)
                raise asyncio.CancelledError from None
            except (ConnectionLost, ConnectionError):
                # A fault rule drops the answer, or the client has closed the connection.
                if request.transport is not None:
                    request.transport.abort()
                raise asyncio.CancelledError from None
        response = _response(answer)
        if not request.content.is_eof():
            # what is left of the body could not be told from the next request: say that none can follow
            response.force_close()
        return response

    return handle


def _response(answer: HttpResponse) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


async def _send_half(request: web.BaseRequest, answer: HttpResponse) -> None:
    """Send the headers and the first half of the body, then break the connection."""
    response = web.StreamResponse(status=answer.status, headers=answer.headers)
    response.content_length = len(answer.body)
    await response.prepare(request)
    await response.write(answer.body[: len(answer.body) // 2])
    if request.transport is not None:
        request.transport.abort()


def _without_frames(error: ConnectionError) -> ConnectionError:
    """Return an error of the same kind and text, and take the traceback from the given one.

    The future that was waited for keeps its error, the error its traceback, and a frame of the traceback the future. So
    what the other frames hold, the answer or the body, would stay until the garbage is collected.
    """
    error.__traceback__ = None
    return type(error)(*error.args)


async def _body(request: web.BaseRequest, limit: int) -> bytes:
    """Read the body.

    Raises:
        Refusal: it exceeds the limit, also where its headers do not, or its encoding is broken.
        ConnectionError: the client closed the connection before its end.
    """
    too_large = (request.content_length or 0) > limit
    asks_first = request.headers.get("Expect", "").lower() == "100-continue" and request.version >= (1, 1)
    if asks_first and too_large:
        raise body_too_large()
    if asks_first and request.transport is not None:
        # The client waits for this before it sends the body, many for a second, some without end.
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in request.content.iter_any():
            size += len(chunk)
            too_large = too_large or size > limit
            if not too_large:
                chunks.append(chunk)
            elif size > _DROPPED_BYTES:
                break
        if too_large:
            raise body_too_large()
        return b"".join(chunks)
    except (HttpProcessingError, web.RequestPayloadError) as error:
        raise parameter_invalid(f"Malformed HTTP request: the body cannot be read ({type(error).__name__}).") from error
    except ConnectionError as error:
        raise _without_frames(error) from None
