"""The heartbeats of one client: one call, and the wait for the turn of the next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import (
    CodecError,
    ParameterInvalid,
    PermissionDenied,
    ResourceGone,
    ServiceError,
    TransportError,
    TunnelError,
    TunnelExpired,
)
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import Channel, ClientId
from ots_tunnel.worker.settings import WorkerSettings

logger = logging.getLogger(__name__)

#: Seconds after which the pause between two heartbeats looks at the clock: a machine that wakes up sends one at once.
CLOCK_LOOK = 5.0

#: Errors that a new client cannot fix (docs/protocol.md 5.3).
TERMINAL = (ParameterInvalid, TunnelExpired, PermissionDenied)
#: Errors after which a call is repeated. CodecError: a load balancer answered with a page of its own.
PASSING = (TransportError, ServiceError, CodecError)


class Heartbeats:
    """Sends the heartbeats of one client.

    Args:
        clock: seconds that count suspended time.
        show: called after each heartbeat with its error, or with None when it was answered.
    """

    def __init__(
        self,
        client: TunnelClient,
        client_id: ClientId,
        settings: WorkerSettings,
        *,
        clock: Callable[[], float],
        show: Callable[[TunnelError | None], None],
    ) -> None:
        self._client = client
        self._client_id = client_id
        self._settings = settings
        self._clock = clock
        self._show = show
        #: Set when a channel has something to report: the next heartbeat may come early.
        self.due = asyncio.Event()

    def __repr__(self) -> str:
        return f"Heartbeats({self._client_id})"

    async def send(self, report: Sequence[Channel]) -> tuple[Channel, ...] | None:
        """Send one heartbeat; None when it failed and is to be repeated.

        Raises:
            ResourceGone: the service does not know the client any more.
            ParameterInvalid, TunnelExpired, PermissionDenied: the tunnel cannot be consumed.
        """
        settings = self._settings
        timeout = max(settings.interval, settings.early_spacing)
        try:
            answer = await self._client.heartbeat(settings.tunnel_id, self._client_id, report, timeout=timeout)
        except (ResourceGone, *TERMINAL):
            raise
        except PASSING as error:
            fields = {"tunnel_id": settings.tunnel_id, "client_id": self._client_id, "error": str(error)}
            logger.warning("heartbeat failed", extra={"action": LogAction.HEARTBEAT_FAILED, **fields})
            self._show(error)
            return None
        self._show(None)
        return answer

    async def wait_for_turn(self, seconds: float, limit: Callable[[], float]) -> None:
        """Wait until a heartbeat is due: `early_spacing` at least, `seconds` at most.

        Args:
            limit: when the wait is over in any case, by the clock; asked again and again, since a drain sets it.
        """
        due = self._clock() + seconds
        await asyncio.sleep(min(seconds, self._settings.early_spacing))
        # The loop's timers stop while the machine is suspended, and the service's timeout does not.
        while (left := min(due, limit()) - self._clock()) > 0 and not self.due.is_set():
            try:
                async with asyncio.timeout(min(left, CLOCK_LOOK)):
                    await self.due.wait()
            except TimeoutError:
                pass  # the regular beat, or time to look at the clock
