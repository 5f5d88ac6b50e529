"""The slow stand-in, the rows with their time of sending, and the CPU of windows."""

from __future__ import annotations

import time

import pytest

from ots_tunnel.protocol.page import all_rows_stored
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from tests.bench.hot_channel import stored
from tests.bench.idle import cpu_per_minute
from tests.bench.latency import ROWS_PER_WRITE, changes_now
from tests.bench.programs.processors import SENT_COLUMN


def test_the_stand_in_answers_that_every_row_is_stored() -> None:
    assert all_rows_stored(stored(100), 100)


def test_rows_hold_their_time_of_sending() -> None:
    before = time.time_ns() // 1000
    rows = [decode_row(change.body) for change in changes_now(7)]
    sent = [column.value for row in rows for column in row.columns if column.name == SENT_COLUMN]

    assert len({row.primary_key for row in rows}) == len(sent) == ROWS_PER_WRITE
    assert all(isinstance(value, int) and before <= value <= time.time_ns() // 1000 for value in sent)


def test_windows_are_scaled_to_a_minute() -> None:
    assert cpu_per_minute([1.0, 1.5, 1.75], 30) == pytest.approx([1.0, 0.5])
