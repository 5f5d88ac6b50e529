"""The requests of a wave as bodies: several are encoded and summed at a time.

MD5 takes as long as everything else that is computed for a request, and eight are made in little more time than one
(`protocol.md5`). Bodies that wait take memory, so requests with large rows are encoded a few at a time, or alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.message import SummedBody
from ots_tunnel.protocol.page import encode_batch_writes, total_size
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.table.waves import Wave

#: Requests that are encoded at a time: those of a usual page of 1,000 rows, and more.
AT_ONCE = 8
#: Bytes of the records of requests that are encoded at a time: a millisecond of work.
AT_ONCE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Encoded:
    """A request that writes records as they are."""

    records: list[Record] = field(repr=False)
    body: SummedBody


def encoded(table: str, wave: Wave) -> Iterator[Encoded]:
    """The requests of a wave, in their order.

    Raises:
        CodecError: a record is malformed; the requests before its own were given.
    """
    at = 0
    while at < len(wave):
        portion = _portion(wave[at : at + AT_ONCE])
        try:
            bodies = encode_batch_writes(table, portion)
        except CodecError:
            portion = portion[:1]
            bodies = encode_batch_writes(table, portion)
        yield from map(Encoded, portion, bodies)
        at += len(portion)


def _portion(requests: Sequence[list[Record]]) -> Sequence[list[Record]]:
    """The first requests, as many as have `AT_ONCE_BYTES` together; one at least."""
    size = 0
    for count, records in enumerate(requests):
        size += total_size(records)
        if size > AT_ONCE_BYTES and count:
            return requests[:count]
    return requests
