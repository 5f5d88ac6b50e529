"""Pages cut into requests: nothing lost, nothing twice, the order of every key kept."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.row_change import ENVELOPE_BYTES
from ots_tunnel.sinks.table.waves import MAX_WAVES, plan_requests
from tests.support.records import numbered_record

pytestmark = pytest.mark.usefixtures("compiled_codec")


pages = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(Action)), max_size=60).map(
    lambda rows: [numbered_record(key, number, action) for number, (key, action) in enumerate(rows)]
)


@given(pages, st.integers(1, 20), st.integers(200, 2000))
def test_waves_hold_every_record_once_and_in_order(page: list[Record], max_rows: int, max_bytes: int) -> None:
    waves = plan_requests(page, Limits(max_rows, max_bytes))
    if waves is None:
        assert max(sum(one.key == other.key for other in page) for one in page) > MAX_WAVES
        return

    by_key: dict[bytes, list[Record]] = defaultdict(list)
    for one in page:
        by_key[one.key].append(one)
    for wave in waves:
        keys = [one.key for request in wave for one in request]
        assert len(keys) == len(set(keys))
        for request in wave:
            assert 1 <= len(request) <= max_rows
            assert len(request) == 1 or sum(one.size + ENVELOPE_BYTES for one in request) <= max_bytes
    written: dict[bytes, list[Record]] = defaultdict(list)
    for one in (one for wave in waves for request in wave for one in request):
        written[one.key].append(one)
    assert written == by_key


@pytest.mark.parametrize(
    "odd",
    [
        Record(Action.PUT, encode_row((("k", 1),), [Column("large", "x" * 3000, 1)])),
        Record(Action.UPDATE, encode_row((("k", 1),))),
        Record(Action.PUT, b"no row"),
    ],
    ids=["larger than a request", "update of nothing", "malformed"],
)
def test_unusual_records_are_left_to_the_python_planner(odd: Record) -> None:
    assert plan_requests([numbered_record(0, 0), odd], Limits(max_bytes=2000)) is None
