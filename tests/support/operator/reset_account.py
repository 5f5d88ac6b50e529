"""A true account of one object's tunnel and destination: what was copied, and what never will be.

It knows what no status tells: which existing rows the destination has, until when every change has reached it, and the
times in between which it has missed. Times are Unix seconds. The stream keeps a week; a worker that finds its start
older than that stops, as with PossibleGap.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ots_tunnel.model import (
    ChannelId,
    ChannelStatus,
    Checkpoint,
    Stage,
    StreamConfig,
    Token,
    TunnelId,
    TunnelType,
)
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from tests.support.operator.worlds import COPY, base, channel, description

RETENTION = 7 * 86_400


@dataclass
class Stream:
    """The tunnel; `until` is how far its changes were consumed, None before the first one."""

    name: str
    kind: TunnelType
    config: StreamConfig | None
    start: float
    created: float
    is_ours: bool
    base_done: bool = False
    until: float | None = None


@dataclass
class Destination:
    """The table. Every change before `until` is in it, but for those in the holes: (begin, end)."""

    created: float
    has_rows: bool = False
    has_base: bool = False
    until: float = 0.0
    holes: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class Account:
    """What exists, and what was copied."""

    stream: Stream | None = None
    destination: Destination | None = None
    made: int = 0

    def create(self, kind: TunnelType, config: StreamConfig | None, now: float, *, is_ours: bool) -> None:
        """Somebody creates the tunnel."""
        self.made += 1
        start = now
        if config is not None and config.start_offset_ns:
            start = config.start_offset_ns / 1e9
        elif config is not None and config.earliest:
            start = now - RETENTION
        self.stream = Stream(f"t{self.made}", kind, config, start, now, is_ours)

    def consume(self, now: float) -> None:
        """Workers copy existing rows, or every change until now."""
        stream, table = self.stream, self.destination
        if stream is None or table is None:
            return
        if stream.kind is TunnelType.BaseAndStream and not stream.base_done:
            # rows that were deleted in between stay, unless the table was empty
            missed = min([table.until, *(begin for begin, _ in table.holes)])
            table.holes = [(missed, stream.created)] if table.has_rows else []
            table.has_rows = table.has_base = stream.base_done = True
            table.until = stream.created
            return
        begin = stream.start if stream.until is None else stream.until
        is_first_of_all = stream.until is None and stream.config is not None and stream.config.earliest
        if begin < now - RETENTION:
            if not is_first_of_all:
                return
            begin = now - RETENTION
        if begin > table.until + 1:
            table.holes.append((table.until, begin))
        else:
            table.holes = [(first, min(end, begin)) for first, end in table.holes if first < begin]
        stream.until = table.until = now
        table.has_rows = True

    def seen_table(self) -> Table | Missing:
        """The destination as the operator sees it."""
        table = self.destination
        return Missing() if table is None else Table(COPY, empty=not table.has_rows, created=table.created)

    def seen_tunnel(self, now: float, *, is_consumed: bool) -> Tunnel | Missing:
        """The tunnel as the operator sees it."""
        if self.stream is None:
            return Missing()
        stream, client = self.stream, "01234567-pod-1" if is_consumed else ""
        alive, channels = ChannelStatus.OPEN if is_consumed else ChannelStatus.WAIT, []
        is_streaming = stream.kind is TunnelType.Stream or stream.base_done
        if stream.kind is TunnelType.BaseAndStream:
            ended = ChannelStatus.TERMINATED if stream.base_done else alive
            channels.append(base(f"b-{stream.name}", ended, client="" if stream.base_done else client))
        if is_streaming:
            channels.append(channel(f"c-{stream.name}", alive, client=client, consumed=stream.until or 0.0))
        found = description(
            *channels,
            stage=Stage.STREAM if is_streaming else Stage.BASE,
            kind=stream.kind,
            stream=stream.config,
            service_time=now,
            tunnel_id=TunnelId(stream.name),
            create_time_ns=int(stream.created * 1e9),
        )
        moved = {one.channel_id: int(bool(one.consume_point_ns)) for one in channels}
        token = Token("CAISCxIFaXQ6NTAYACAy")
        return Tunnel(found, {ChannelId(key): Checkpoint(token, count) for key, count in moved.items()})
