"""What the service says of a tunnel's channels and of its table's stream, remembered for some time.

An AccessKey that may not describe the table leaves the retention unknown; then the longest one that the service allows
counts. Without a description of the tunnel the consume points are unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import CodecError, ServerUnavailable, ServiceError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, ChannelStatus, TunnelDescription
from ots_tunnel.protocol.possible_gap import LONGEST_RETENTION, SHORTEST_RETENTION, within_stream
from ots_tunnel.worker.settings import WorkerSettings

logger = logging.getLogger(__name__)

#: Share of the retention that makes a pause a long one.
LONG_PAUSE = 0.1
#: Seconds for which an answer about the stream serves; its retention may be lowered at any time.
STREAM_LASTS = LONG_PAUSE * SHORTEST_RETENTION
#: Seconds for which a description of the tunnel serves further channels; own choice. An older consume point only makes
#: a gap look longer. But one in which a channel waits cannot tell where its parents ended.
DESCRIPTION_LASTS = 60.0


@dataclass(frozen=True, slots=True)
class KeptStream:
    """What the service keeps of a table's changes: for how many seconds, and none from before it was enabled.

    Args:
        enabled: Unix seconds; None is unknown.
        stream_id: empty is unknown.
    """

    retention: float = LONGEST_RETENTION
    enabled: float | None = None
    stream_id: str = ""


class ServiceView:
    """What one worker knows of its tunnel and of the table's stream; channels may ask at the same time.

    Args:
        clock: seconds that count suspended time.
    """

    def __init__(self, client: TunnelClient, settings: WorkerSettings, clock: Callable[[], float]) -> None:
        self._client = client
        self._settings = settings
        self._clock = clock
        self._described: tuple[float, TunnelDescription] | None = None
        self._stream: tuple[float, KeptStream] | None = None

    def __repr__(self) -> str:
        return f"ServiceView({self._settings.tunnel_id})"

    @property
    def described_at(self) -> float | None:
        """The service's time of the last description of the tunnel, Unix seconds; None is unknown."""
        return None if self._described is None else self._described[1].service_time

    async def tunnel(self, channel_id: ChannelId) -> TunnelDescription | None:
        """The tunnel with the channel; None where it cannot be described.

        Raises:
            TransportError, ServerUnavailable: it cannot be described at present.
        """
        if self._described is not None:
            asked_at, tunnel = self._described
            if _was_open(tunnel, channel_id) and self._clock() - asked_at <= DESCRIPTION_LASTS:
                return tunnel
        settings = self._settings
        asked_at = self._clock()
        try:
            tunnel = await self._client.describe_tunnel(settings.table, settings.tunnel_name, settings.tunnel_id)
        except ServerUnavailable:
            raise
        except (ServiceError, CodecError) as error:
            self._log_unknown("consume points are unknown: the tunnel cannot be described", error)
            return None
        self._described = (asked_at, tunnel)
        return tunnel

    async def stream(self) -> KeptStream:
        """What the service keeps of the table's changes.

        Raises:
            TransportError, ServerUnavailable: the table cannot be described at present.
        """
        if self._stream is not None:
            asked_at, stream = self._stream
            if self._clock() - asked_at <= STREAM_LASTS:
                return stream
        self._stream = (self._clock(), await self._asked_stream())
        return self._stream[1]

    async def parents(self, channel_id: ChannelId) -> tuple[str, ...]:
        """The channels that one follows: a channel of the stream has the id of its shard. None where that is unknown.

        Raises:
            TransportError, ServerUnavailable: they cannot be asked for at present.
        """
        stream = await self.stream()
        if not stream.stream_id:
            return ()
        try:
            return await self._client.parents_of_shard(stream.stream_id, channel_id)
        except ServerUnavailable:
            raise
        except (ServiceError, CodecError) as error:
            self._log_unknown(f"parents of channel {channel_id} are unknown: it begins with the tunnel", error)
            return ()

    def within_stream(self, until: float, stream: KeptStream) -> float:
        """`until`, or since when the stream is enabled where nothing can be missing before that; Unix seconds."""
        tunnel = self._described[1] if self._described is not None else None
        return within_stream(until, tunnel, stream.enabled)

    async def _asked_stream(self) -> KeptStream:
        table = self._described[1].tunnel.table_name if self._described is not None else self._settings.table
        try:
            found = await self._client.describe_stream(table)
        except ServerUnavailable:
            raise
        except (ServiceError, CodecError) as error:
            self._log_unknown("retention is unknown, the longest one counts: the table cannot be described", error)
            return KeptStream()
        if not found.enabled:
            return KeptStream()
        return KeptStream(found.expiration_hours * 3600.0 or LONGEST_RETENTION, found.enabled_time, found.stream_id)

    def _log_unknown(self, sentence: str, error: Exception) -> None:
        fields = {"tunnel_id": self._settings.tunnel_id, "error": str(error)}
        logger.warning(sentence, extra={"action": LogAction.RETENTION_UNKNOWN, **fields})


def _was_open(tunnel: TunnelDescription, channel_id: ChannelId) -> bool:
    """Whether a channel is described, and no longer waits: until then its parents had not ended."""
    return any(found.channel_id == channel_id and found.status is not ChannelStatus.WAIT for found in tunnel.channels)
