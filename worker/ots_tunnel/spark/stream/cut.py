"""Finds the records of a logged batch again, in whatever pages they come. Pure.

A channel of the stream is cut by number: records behind the mark `after` until there are as many as were logged. The
last one must have the logged mark: otherwise records are missing, or another order came, and nothing may be guessed.

A channel of base data is cut by key: rows behind `after` up to the logged key. The scan is live, so rows may have come,
gone or changed since; the changes themselves follow in the stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from ots_tunnel.errors import ReplayDiffers
from ots_tunnel.model import ChannelId, SequenceInfo
from ots_tunnel.protocol.record import Record
from ots_tunnel.spark.stream.marks import is_behind, mark_of, rows_until
from ots_tunnel.spark.stream.offsets import ChannelOffset


class Cut:
    """Takes the records of one channel's span from its pages, in their order.

    Args:
        channel: with a span.
    """

    def __init__(self, channel_id: ChannelId, channel: ChannelOffset) -> None:
        assert channel.span is not None, "only channels with records are read again"
        assert channel.position.last is not None, "a span has a last record"
        self._channel_id = channel_id
        self._span = channel.span
        self._last = channel.position.last
        self._rows = 0
        #: Whether the span is complete.
        self.is_done = False

    def __repr__(self) -> str:
        return f"Cut({self._channel_id}, {self._rows} of {self._span.rows} rows)"

    def take(self, records: Sequence[Record]) -> list[Record]:
        """The records of a page that belong to the span.

        Raises:
            ReplayDiffers: they are not those of the batch. CodecError: a record is malformed.
        """
        first = 0 if self._span.after is None else rows_until(records, self._span.after)
        found = list(records[first:])
        if not isinstance(self._last, SequenceInfo):
            return self._until_key(found)
        found = found[: self._span.rows - self._rows]
        self._rows += len(found)
        if found and (self._rows == self._span.rows) != (mark_of(found[-1]) == self._last):
            raise self._differs(f"record {self._rows} of {self._span.rows} has another place than the last one had")
        self.is_done = self._rows == self._span.rows
        return found

    def ended(self) -> None:
        """The channel has no further records.

        Raises:
            ReplayDiffers: some of the batch are missing.
        """
        if self.is_done:
            return
        if isinstance(self._last, SequenceInfo):
            raise self._differs(f"found {self._rows} records, it had {self._span.rows}")
        self.is_done = True  # rows at the end of a slice were deleted

    def _until_key(self, records: list[Record]) -> list[Record]:
        count = rows_until(records, self._last)
        self._rows += count
        # the last key itself proves it as well: keys come in order
        self.is_done = count < len(records) or (count > 0 and not is_behind(self._last, mark_of(records[count - 1])))
        return records[:count]

    def _differs(self, what: str) -> ReplayDiffers:
        return ReplayDiffers(self._channel_id, what)
