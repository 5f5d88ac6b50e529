"""Where a query stands in the channels of its tunnel: Spark's offsets as values. Pure.

Theory of operation. Spark writes the offset at which a batch ends into its log before the batch is read, and commits it
when the sink has stored the batch. After a crash it asks for the batch that was logged last again, and it must get the
same records. The offset in the log is all that is left by then, and that at which the first batch began is not in it.
So an offset tells of each channel

    position   where the next batch begins: a token, and the mark of the last record before it; of a channel that was
               idle, also until when it was read, since its token may stand still meanwhile
    span       what this batch has of the channel: the token at which its first page began, the mark behind which its
               first record is, and how many records there are up to the position; None if it has nothing of it

and a batch can be read again from the offset at its end alone (`cut`).

A channel that no batch has yet is one that this query has not read: its first page is in a batch before a checkpoint
behind it is stored, also a page without records (`channel_pages`). So if the service has a checkpoint of such a
channel, another client has read it (`alignment`). Two kinds of channels would look the same, and are named:

    ended         those that are over: this query has read them to their ends, or they had ended before it began
    read_before   those that others had read before the checkpoint folder was made, with their sequence numbers then

Example: batch 7 has 120 records of channel c. Its offset has c with position (token T2, mark 17:30) and span (token T1,
after 17:05, 120 rows). If batch 8 has nothing of c, its offset has the same position, and no span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ots_tunnel.model import FINISHED, ChannelId, Token, TunnelId
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.spark.stream.marks import Mark


@dataclass(frozen=True, slots=True)
class Position:
    """Where a channel's next record is: in the pages from a token on, behind a mark.

    Args:
        token: FINISHED after the channel's end; it may hold a key and is not printed.
        last: mark of the last record before it; None if there was none.
        until: Unix seconds, by the service's clock, until which the channel had been read to its end; None is unknown.
        gap: the last changes that may be missing before here, in whole seconds; None is nothing. The process that has
            passed them may be killed before it tells of them, and no later one finds them.
    """

    token: Token = field(repr=False)
    last: Mark | None = None
    until: int | None = None
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """The records of one channel in one batch; they end at the position beside it.

    Args:
        token: start of the first page.
        after: the first record is behind this mark; None if the channel has none before.
        rows: their number, 1 or more.
    """

    token: Token = field(repr=False)
    after: Mark | None
    rows: int


@dataclass(frozen=True, slots=True)
class ChannelOffset:
    """One channel at the end of a batch; see the module."""

    position: Position
    span: Span | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the channel was read to its end."""
        return self.position.token == FINISHED


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch.

    Args:
        tunnel_id: the tunnel; a checkpoint folder of another one is refused.
        query_id: made with the first offset of a checkpoint folder: names the clients of this query.
        channels: those that were read.
        ended, read_before: see the module. `ended` is None in a folder of a release that did not name them, in which
            channels without a batch are compared with nothing.
    """

    tunnel_id: TunnelId
    query_id: str
    channels: Mapping[ChannelId, ChannelOffset] = field(default_factory=dict)
    ended: frozenset[ChannelId] | None = frozenset()
    read_before: Mapping[ChannelId, int] = field(default_factory=dict)

    @property
    def spans(self) -> Mapping[ChannelId, ChannelOffset]:
        """The channels of which the batch has records."""
        return {channel_id: found for channel_id, found in self.channels.items() if found.span is not None}

    def carried(self, over: frozenset[ChannelId] = frozenset()) -> Offset:
        """The positions alone, for the next batch to begin with.

        Args:
            over: all channels whose end the service has stored, and still lists: they never come again.
        """
        kept = {
            channel_id: ChannelOffset(found.position)
            for channel_id, found in self.channels.items()
            if channel_id not in over
        }
        return replace(self, channels=kept, ended=None if self.ended is None else over)

    def with_channels(self, channels: Mapping[ChannelId, ChannelOffset]) -> Offset:
        """With these channels, which it knows by that."""
        before = {name: number for name, number in self.read_before.items() if name not in channels}
        return replace(self, channels=channels, read_before=before)
