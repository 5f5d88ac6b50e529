"""What a page costs a sink in memory: declared by each sink, charged to the worker's budget.

Measured with pages of 4 MiB: 40,000 rows of one small cell, 350 rows of 500 small cells, and two cells of 2 MiB. What a
sink makes of a slice (`slices`) or holds for requests (`feed`) does not grow with the page and is part of `per_byte`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class PageCost:
    """Bytes of memory of a page on its way through a sink.

    Args:
        per_byte: copies of the page: the answer, its rows in the sink's form, the message made of them, the bytes of
            the message, and the part that the connection has not sent yet.
        per_record: bytes of the objects of each record, whatever its size.
    """

    per_byte: float = 5.0
    per_record: int = 100

    def of(self, size_bytes: int, records: int) -> int:
        """Bytes for a page of that size on the wire and that number of records."""
        return int(size_bytes * self.per_byte) + records * self.per_record

    def __add__(self, other: Self) -> Self:
        return type(self)(self.per_byte + other.per_byte, self.per_record + other.per_record)
