"""Records and pages as a client decodes them."""

from __future__ import annotations

from ots_tunnel.client.page import Page
from ots_tunnel.model import Action, KeyValue, PrimaryKey, SequenceInfo, Token
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record

#: Milliseconds; version of every cell here.
VERSION = 5
#: Microseconds; commit time of numbered records, whose number is their row index.
COMMITTED_US = 1_700_000_000_123_456
#: Seconds; commit time of a page's first record, the next ones follow a second apart.
PAGE_SECONDS = 900
#: Reported bytes of a page, per record.
RECORD_BYTES = 1000


def record(
    key: PrimaryKey, *columns: Column, action: Action = Action.PUT, sequence: SequenceInfo | None = None
) -> Record:
    """A record; a DELETE has no columns, and without a sequence it is base data."""
    is_delete = action is Action.DELETE
    return Record(action, encode_row(key, () if is_delete else columns, delete=is_delete, sequence=sequence))


def numbered_record(key: KeyValue, number: int, action: Action = Action.PUT) -> Record:
    """A record of the stream with the key `id` and one column `n`; later ones of a key have larger numbers."""
    sequence = SequenceInfo(0, COMMITTED_US, number)
    return record((("id", key),), Column("n", number, VERSION), action=action, sequence=sequence)


def page(rows: int, next_token: str, may_more: bool | None = None, service_time: float | None = None) -> Page:
    """A page of the stream with the keys k0, k1, ..., numbers from 0 and a second between two records.

    Args:
        service_time: seconds of the service's clock; None if the answer has none.
    """
    times = ((PAGE_SECONDS + number) * 1_000_000 for number in range(rows))
    return page_of_times(*times, next_token=next_token, may_more=may_more, service_time=service_time)


def page_of_times(
    *times_us: int, next_token: str = "next", may_more: bool | None = True, service_time: float | None = None
) -> Page:
    """A page of the stream with one record per commit time."""
    records = [
        record((("pk", f"k{number}"),), Column("n", number, VERSION), sequence=SequenceInfo(0, time_us, number))
        for number, time_us in enumerate(times_us)
    ]
    return Page(records, Token(next_token), may_more, RECORD_BYTES * len(records), service_time)
