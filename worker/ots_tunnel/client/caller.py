"""One call of the service with its retries: sign, send, parse, pause, repeat.

`ServiceCaller` awaits, `SyncServiceCaller` blocks; both decide by `client.retry` and `protocol.http.rpc`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ots_tunnel.client.repeats import tell_repeat
from ots_tunnel.client.retry import retry_delay
from ots_tunnel.credentials import CredentialsProvider
from ots_tunnel.errors import TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import Operation
from ots_tunnel.protocol.http.rpc import Encodable, build_request, parse_response
from ots_tunnel.transport import BeforeAnswer, Transport
from ots_tunnel.transport.sync import BlockingTransport

logger = logging.getLogger(__name__)

#: Called with the operation's name and the error of every repeated call; feeds `retries_total`.
RetryListener = Callable[[str, TunnelError], None]

#: Turns a response into an answer; usually `parse_response`.
Parser = Callable[[Operation, HttpResponse], Any]

#: Seconds one try may take (docs/protocol.md 5.4).
REQUEST_TIMEOUT = 60.0


class _Signer:
    """Builds a signed request from a message, for both callers."""

    def __init__(self, instance: str, credentials: CredentialsProvider, clock: Callable[[], float]) -> None:
        self.instance = instance
        self._credentials = credentials
        self._clock = clock

    def request(self, operation: Operation, message: Encodable) -> HttpRequest:
        return build_request(
            operation,
            message,
            instance=self.instance,
            credentials=self._credentials(),
            now=self._clock(),
            trace_id=secrets.token_hex(16),
        )


class ServiceCaller:
    """Calls one instance; coroutines.

    Args:
        clock: Unix seconds, for the request's date.
        sleep, entropy: replaced in tests.
        on_retry: called for every repetition.
    """

    def __init__(
        self,
        transport: Transport,
        instance: str,
        credentials: CredentialsProvider,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        entropy: Callable[[], float] = random.random,
        on_retry: RetryListener | None = None,
    ) -> None:
        self._transport = transport
        self._signer = _Signer(instance, credentials, clock)
        self._sleep = sleep
        self._entropy = entropy
        self.on_retry = on_retry

    async def call(
        self,
        operation: Operation,
        message: Encodable,
        *,
        retry: Backoff | None = None,
        timeout: float = REQUEST_TIMEOUT,
        before_send: Callable[[], None] | None = None,
        before_answer: BeforeAnswer | None = None,
        parse: Parser = parse_response,
    ) -> tuple[Any, HttpResponse]:
        """The parsed answer and the raw one.

        Args:
            message: the request, or its body.
            retry: None tries once.
            timeout: seconds per try.
            before_send, before_answer: see `transport.Transport.send`; called in every try.
            parse: returns the answer, or raises the error that decides about a repetition.

        Raises:
            TransportError: no answer. ServiceError: an error code. CodecError: a malformed answer.
        """
        began = asyncio.get_running_loop().time()
        attempt = 0
        while True:
            try:
                # Signed for every try: the date must be fresh, and the keys may have been rotated.
                request = self._signer.request(operation, message)
                response = await self._transport.send(
                    request, timeout=timeout, before_send=before_send, before_answer=before_answer
                )
                return parse(operation, response), response
            except TunnelError as error:
                elapsed = asyncio.get_running_loop().time() - began
                delay = _delay(retry, operation, error, attempt, elapsed, self._entropy)
                if delay is None:
                    raise
                _report(operation, error, delay, self.on_retry)
            attempt += 1
            await self._sleep(delay)

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()


class SyncServiceCaller:
    """Calls one instance; blocks."""

    def __init__(
        self,
        transport: BlockingTransport,
        instance: str,
        credentials: CredentialsProvider,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        entropy: Callable[[], float] = random.random,
    ) -> None:
        self._transport = transport
        self._signer = _Signer(instance, credentials, clock)
        self._sleep = sleep
        self._entropy = entropy

    def call(
        self,
        operation: Operation,
        message: Encodable,
        *,
        retry: Backoff | None = None,
        timeout: float = REQUEST_TIMEOUT,
        before_send: Callable[[], None] | None = None,
        parse: Parser = parse_response,
    ) -> tuple[Any, HttpResponse]:
        """The parsed answer and the raw one; arguments and errors as in `ServiceCaller.call`."""
        began = time.monotonic()
        attempt = 0
        while True:
            try:
                request = self._signer.request(operation, message)
                response = self._transport.send(request, timeout=timeout, before_send=before_send)
                return parse(operation, response), response
            except TunnelError as error:
                delay = _delay(retry, operation, error, attempt, time.monotonic() - began, self._entropy)
                if delay is None:
                    raise
                _report(operation, error, delay, None)
            attempt += 1
            self._sleep(delay)

    def close(self) -> None:
        """Close the transport."""
        self._transport.close()


def _delay(
    retry: Backoff | None,
    operation: Operation,
    error: TunnelError,
    attempt: int,
    elapsed: float,
    entropy: Callable[[], float],
) -> float | None:
    if retry is None:
        return None
    return retry_delay(
        retry, error, idempotent=operation.idempotent, attempt=attempt, elapsed=elapsed, entropy=entropy()
    )


def _report(operation: Operation, error: TunnelError, delay: float, listener: RetryListener | None) -> None:
    fields = {"action": LogAction.CALL_REPEATED, "operation": operation.name, "error": str(error)}
    if tell_repeat(error):
        # without the pause, so that equal warnings are written once a minute
        logger.warning("call failed and is repeated", extra=fields)
    else:
        logger.debug("call failed and is repeated", extra={**fields, "duration": delay})
    if listener is not None:
        listener(operation.name, error)
