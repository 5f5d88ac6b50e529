"""What a sink is given: the records of one channel, and the records that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ots_tunnel.model import ChannelId, ChannelType, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.confirmation import Confirmation

#: Called with a record that the destination refuses for good, the reason's code and its text, before the sink has
#: taken the batch.
OnRefused = Callable[[Record, str, str], None]

#: The token of records that were not read from a tunnel.
NO_TOKEN = Token("")


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one channel in commit order, usually one page.

    Args:
        start: the token that the page was read at: a name for its position, the same in every replay.
        following: the token of the page after it.
        head: the page's first record, also where a transform left it out; None means the first of `records`.
        on_refused: called with every record that is refused for good, while the others are stored; None means that
            the first refusal is raised.
        page: number of the page since the channel was opened; see `Channels.checkpointed`.
        after: ends once the refused records of the batch are stored; a file with the others appears only then. It
            raises why they cannot be. None: nothing has to be waited for.
    """

    channel_id: ChannelId
    channel_type: ChannelType
    records: Sequence[Record]
    start: Token = NO_TOKEN
    following: Token = NO_TOKEN
    head: Record | None = None
    on_refused: OnRefused | None = None
    page: int = 0
    after: Confirmation | None = field(default=None, repr=False)

    @property
    def is_read_again(self) -> bool:
        """Whether no checkpoint will follow it: the page is cut at the end time, and every resume reads it again."""
        return self.start != NO_TOKEN and self.start == self.following

    def __repr__(self) -> str:
        return f"Batch({self.channel_type}, {len(self.records)} records)"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was refused for good, with the reason."""

    record: Record = field(repr=False)
    code: str
    message: str

    @property
    def size(self) -> int:
        """Bytes of the record as it came."""
        return self.record.size
