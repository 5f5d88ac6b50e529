"""Finds changes that may be missing because nobody read them in time; stops there, or says so and goes on.

Theory of operation. `protocol.possible_gap` decides from a few times; this module brings them together:

    GapGuard         one worker: description of the tunnel, retention of the table, what was found
    GapWatch         one open channel: asked about every page before the sink gets it

When a channel is opened, the tunnel is described, because the consume point tells what was consumed even where the
service has moved the cursor. A channel that this worker has read before, and whose checkpoint is the token of its last
page, is read until the answer of that page: the consume point of an idle channel may be old. For the same reason the
read mark of the settings counts where it is later: the operator keeps it while workers come and go.

The retention is asked for only when a page comes later than a tenth of the shortest retention after what was read
before, and again when a tenth of the retention has passed. An AccessKey that may not describe the table leaves it
unknown; then the longest retention that the service allows counts. The same answer tells since when the stream is
enabled, and nothing can be missing of what came before a stream that is as old as the tunnel.

With `Stop` a possible gap ends the worker. Nothing behind it is written and no checkpoint passes it, so the next worker
finds it again. With `Continue` it is logged, counted and shown in the status.

Source: docs/architecture.md 3.8.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.client.tunnel import Page, TunnelClient
from ots_tunnel.errors import CodecError, PossibleGap, ServerUnavailable, ServiceError
from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.model import ChannelId, Token, TunnelDescription
from ots_tunnel.protocol.page import reached_log_end
from ots_tunnel.protocol.possible_gap import (
    LONGEST_RETENTION,
    SHORTEST_RETENTION,
    Gap,
    possible_gap,
    read_on,
    read_until,
    within_stream,
)
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.status.metrics import WorkerMetrics
from ots_tunnel.worker.status.worker_status import WorkerStatus

logger = logging.getLogger(__name__)

#: Share of the retention after which it is asked for again.
LONG_PAUSE = 0.1
#: Seconds for which a description of the tunnel serves further channels; own choice. An older consume point only makes
#: a gap look longer.
DESCRIPTION_LASTS = 60.0


@dataclass(frozen=True, slots=True)
class LastPage:
    """The last page that was read of a channel: its next token, and until when everything is read with it."""

    token: Token
    read_until: float | None


@dataclass(frozen=True, slots=True)
class KeptStream:
    """What the service keeps of a table's changes: for how many seconds, and none from before it was enabled.

    Args:
        enabled: Unix seconds; None is unknown.
    """

    retention: float = LONGEST_RETENTION
    enabled: float | None = None


class GapGuard:
    """What the channels of one worker share; channels may ask at the same time.

    Args:
        clock: seconds that count suspended time. wall: Unix seconds, where an answer has no time.
    """

    def __init__(
        self,
        client: TunnelClient,
        settings: WorkerSettings,
        status: WorkerStatus,
        metrics: WorkerMetrics,
        *,
        clock: Callable[[], float] = boottime,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._settings = settings
        self._status = status
        self._metrics = metrics
        self._clock = clock
        self.wall = wall
        self.last_pages: dict[ChannelId, LastPage] = {}
        self._described: tuple[float, TunnelDescription] | None = None
        self._stream: tuple[float, KeptStream] | None = None

    def __repr__(self) -> str:
        return f"GapGuard({self._settings.tunnel_id}, {len(self.last_pages)} channels)"

    async def watch(self, channel_id: ChannelId, token: Token) -> GapWatch:
        """The watch of a stream channel that is opened at a token.

        Raises:
            TransportError, ServerUnavailable: the tunnel cannot be described at present.
        """
        last = self.last_pages.get(channel_id)
        if last is not None and last.token == token:
            return GapWatch(self, channel_id, last.read_until)
        tunnel = await self._description(channel_id)
        return GapWatch(self, channel_id, read_until(channel_id, token, tunnel, mark=self._settings.read_mark))

    async def stream(self) -> KeptStream:
        """What the service keeps of the table's changes.

        Raises:
            TransportError, ServerUnavailable: the table cannot be described at present.
        """
        if self._stream is not None:
            asked_at, stream = self._stream
            if self._clock() - asked_at <= LONG_PAUSE * stream.retention:
                return stream
        self._stream = (self._clock(), await self._asked_stream())
        return self._stream[1]

    def within_stream(self, until: float, stream: KeptStream) -> float:
        """`until`, or since when the stream is enabled where nothing can be missing before that; Unix seconds."""
        tunnel = self._described[1] if self._described is not None else None
        return within_stream(until, tunnel, stream.enabled)

    def found(self, channel_id: ChannelId, gap: Gap) -> None:
        """Report a possible gap.

        Raises:
            PossibleGap: the settings say Stop.
        """
        error = PossibleGap(channel_id, gap.start, gap.end)
        self._status.possible_gaps[channel_id] = gap
        self._metrics.possible_gap()
        if self._settings.on_possible_gap == "Stop":
            raise error
        fields = {"tunnel_id": self._settings.tunnel_id, "channel_id": channel_id, "error": str(error)}
        logger.warning("going on behind a possible gap", extra={"action": LogAction.POSSIBLE_GAP, **fields})

    async def _description(self, channel_id: ChannelId) -> TunnelDescription | None:
        """The tunnel with the channel; None where it cannot be described."""
        if self._described is not None:
            asked_at, tunnel = self._described
            knows = any(channel.channel_id == channel_id for channel in tunnel.channels)
            if knows and self._clock() - asked_at <= DESCRIPTION_LASTS:
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
        return KeptStream(found.expiration_hours * 3600.0 or LONGEST_RETENTION, found.enabled_time)

    def _log_unknown(self, sentence: str, error: Exception) -> None:
        fields = {"tunnel_id": self._settings.tunnel_id, "error": str(error)}
        logger.warning(sentence, extra={"action": LogAction.RETENTION_UNKNOWN, **fields})


@dataclass(slots=True)
class GapWatch:
    """One open stream channel.

    Args:
        read_until: Unix seconds until which everything is read; None is unknown.
    """

    guard: GapGuard = field(repr=False)
    channel_id: ChannelId
    read_until: float | None

    async def check(self, page: Page, end_us: int | None) -> None:
        """Report the changes that may be missing before a page.

        Args:
            end_us: Unix microseconds after which nothing matters; None means that everything does.

        Raises:
            PossibleGap: changes may be missing, and the settings say Stop.
            TransportError, ServerUnavailable: the retention cannot be asked for at present.
        """
        answered = page.service_time if page.service_time is not None else self.guard.wall()
        first, last = _commit_times(page)
        end = None if end_us is None else end_us / 1e6
        gap = await self._gap(answered, first)
        if gap is not None and (end is None or gap.start < end):
            self.guard.found(self.channel_id, Gap(gap.start, gap.end if end is None else min(gap.end, end)))
        self.read_until = read_on(
            self.read_until, answered=answered, last=last, reached_end=reached_log_end(page.may_more, page.rows)
        )
        self.guard.last_pages[self.channel_id] = LastPage(page.next_token, self.read_until)

    async def _gap(self, answered: float, first: float | None) -> Gap | None:
        if self.read_until is None or answered - self.read_until <= LONG_PAUSE * SHORTEST_RETENTION:
            return None
        stream = await self.guard.stream()
        until = self.guard.within_stream(self.read_until, stream)
        return possible_gap(until, answered=answered, first=first, retention=stream.retention)


def _commit_times(page: Page) -> tuple[float | None, float | None]:
    """Unix seconds at which the first and the last record of a page were committed; None without records."""
    if not page.records:
        return None, None
    first, last = page.records[0].sequence, page.records[-1].sequence
    return (None if first is None else first.timestamp_us / 1e6), (None if last is None else last.timestamp_us / 1e6)
