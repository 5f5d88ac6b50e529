"""Answer of one ReadRecords."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.model import Token
from ots_tunnel.protocol.record import Record


@dataclass(frozen=True, slots=True)
class Page:
    """The records that one call has read.

    Args:
        records: in commit order, or in key order on base channels; may be empty.
        next_token: start of the next read; FINISHED after the end.
        may_more: whether the service announces more records; None if it does not say.
        size_bytes: of the whole answer.
        service_time: the service's clock at the answer, Unix seconds; None if unknown.
        decode_seconds: time for verifying the answer and framing its records.
    """

    records: list[Record]
    next_token: Token
    may_more: bool | None
    size_bytes: int
    service_time: float | None
    decode_seconds: float = 0.0

    @property
    def rows(self) -> int:
        """Number of records."""
        return len(self.records)

    def __repr__(self) -> str:
        return f"Page({len(self.records)} records, {self.size_bytes} bytes, may_more={self.may_more})"
