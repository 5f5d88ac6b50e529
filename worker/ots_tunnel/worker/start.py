"""The steps before a session: preflight, opening the sink, Connect. Each ends early when the worker is to end."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from ots_tunnel.client.repeats import telling_repeats
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import AuthFailed, SourceUnanswered, TunnelError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ClientId
from ots_tunnel.protocol.lifecycle import ClientEvent
from ots_tunnel.protocol.plainbuffer.compiled import CODEC
from ots_tunnel.sinks import Sink
from ots_tunnel.worker.session.heartbeats import PASSING, TERMINAL
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.worker_status import WorkerStatus
from ots_tunnel.worker.stop_order import StopOrder

logger = logging.getLogger(__name__)


class Start:
    """Takes the steps before a session, repeats what may pass, and shows its error in the status meanwhile."""

    def __init__(self, settings: WorkerSettings, status: WorkerStatus, order: StopOrder) -> None:
        self._settings = settings
        self._status = status
        self._order = order
        #: Limit of the preflight and of opening the sink; a drain ends them at once.
        self._opening: asyncio.Timeout | None = None
        #: Limit of Connect; closing ends it at once. A drain waits for it, so that the new client is shut down, but not
        #: longer than for a write.
        self._connecting: asyncio.Timeout | None = None

    def __repr__(self) -> str:
        return f"Start({self._settings.client_tag})"

    def drain(self, connect_seconds: float) -> None:
        """End the step under way; Connect may take some seconds more."""
        _end_now(self._opening)
        _end_in(self._connecting, connect_seconds)

    def close(self) -> None:
        """End the step under way at once."""
        _end_now(self._opening)
        _end_now(self._connecting)

    async def run_preflight(self, preflight: Callable[[], Awaitable[None]] | None) -> None:
        """Call the preflight, if there is one.

        Raises:
            TunnelError: the preflight's.
        """
        if preflight is None or self._order.is_given:
            return
        try:
            async with asyncio.timeout(None) as limit:
                self._opening = limit
                with self.showing_repeats():
                    await preflight()
        except TimeoutError:
            if not limit.expired():
                raise
            # Drained or closed meanwhile.
        finally:
            self._opening = None

    async def open_sink(self, sink: Sink) -> None:
        """Open the sink; repeats while its destination, or the source that it is compared with, cannot be reached.

        Raises:
            TunnelError: the sink cannot be opened at all.
        """
        while not self._order.is_given:
            try:
                async with asyncio.timeout(None) as limit:
                    self._opening = limit
                    with self.showing_repeats():
                        await sink.open()
                    self._status.error = None
                    return self._status.sink_opened()
            except (TunnelError, TimeoutError) as error:
                if isinstance(error, TimeoutError) and limit.expired():
                    return  # drained or closed meanwhile
                if isinstance(error, TunnelError) and not error.retryable:
                    raise
                self._status.error = f"{type(error).__name__}: {error}"
                if isinstance(error, SourceUnanswered):
                    self._status.sink_opened()  # it has answered by then
                else:
                    self._status.sink_not_opened(self._status.error)
                logger.warning("sink not ready", extra={**self._extra(LogAction.SINK_NOT_READY), "error": str(error)})
            finally:
                self._opening = None
            await self._order.pause_before_retry()

    async def connect(self, client: TunnelClient) -> ClientId | None:
        """A new client, or None when the worker was drained or closed meanwhile.

        Raises:
            ServiceError: the tunnel cannot be consumed.
        """
        settings = self._settings
        while not self._order.is_given:
            try:
                async with asyncio.timeout(None) as limit:
                    self._connecting = limit
                    try:
                        with self.showing_repeats():
                            client_id = await client.connect(
                                settings.tunnel_id, max(1, math.ceil(settings.timeout)), settings.client_tag
                            )
                    finally:
                        # before the pause after an error: a limit that has ended cannot be changed
                        self._connecting = None
            except TimeoutError:
                if not limit.expired():
                    raise
                return None  # closed meanwhile
            except (*TERMINAL, AuthFailed):
                raise
            except PASSING as error:
                self._status.error = f"{type(error).__name__}: {error}"  # visible while Connect is repeated
                logger.warning("connect failed", extra={**self._extra(LogAction.CONNECT_FAILED), "error": str(error)})
                await self._order.pause_before_retry()
            else:
                self._status.error = None
                self._status.happened(ClientEvent.CONNECTED)
                logger.info(
                    "connected", extra={**self._extra(LogAction.CONNECTED), "client_id": client_id, "codec": CODEC}
                )
                return client_id
        return None

    @contextmanager
    def showing_repeats(self) -> Iterator[None]:
        """Show why calls inside the block are repeated; they are logged as warnings, and not only for debugging."""
        shown: list[str] = []

        def show(error: TunnelError) -> None:
            shown[:] = [f"{type(error).__name__}: {error}"]
            self._status.error = shown[0]

        try:
            with telling_repeats(show):
                yield
        finally:
            if self._status.error in shown:
                self._status.error = None

    def _extra(self, action: LogAction) -> dict[str, object]:
        return {"action": action, "tunnel_id": self._settings.tunnel_id}


def _end_now(limit: asyncio.Timeout | None) -> None:
    """Let a limit expire."""
    _end_in(limit, 0)


def _end_in(limit: asyncio.Timeout | None, seconds: float) -> None:
    """Let a limit expire after some seconds, or earlier if it does so anyway."""
    if limit is not None and not limit.expired():
        earlier, when = limit.when(), asyncio.get_running_loop().time() + seconds
        limit.reschedule(when if earlier is None else min(earlier, when))
