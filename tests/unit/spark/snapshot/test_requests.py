"""Rows of pages, cut into requests."""

from __future__ import annotations

import random

import pytest

from ots_tunnel.client.table_calls import RangePage
from ots_tunnel.protocol.plainbuffer.codec import decode_row, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.tags import HEADER_BYTES
from ots_tunnel.sinks.grouping import Limits
from ots_tunnel.sinks.table.row_change import ENVELOPE_BYTES
from ots_tunnel.spark.snapshot.requests import rows_of_requests


def page(rows: list[bytes], following: int | None) -> RangePage:
    header = rows[0][:HEADER_BYTES] if rows else b""
    return RangePage(
        header + b"".join(row[HEADER_BYTES:] for row in rows), None if following is None else (("k", following),)
    )


@pytest.mark.parametrize("seed", range(10))
def test_each_row_comes_once_and_each_key_is_that_of_the_row_behind(seed: int) -> None:
    entropy = random.Random(seed)
    rows = [encode_row((("k", n),), [Column("c", "x" * entropy.randrange(200), 1)]) for n in range(50)]
    pages = [page(rows[:20], 20), page([], 20), page(rows[20:45], 45), page(rows[45:], None)]
    limits = Limits(max_rows=7, max_bytes=600)

    found = list(rows_of_requests(pages, limits))

    assert [row for part, _ in found for row in part] == rows
    taken = 0
    for part, following in found:
        taken += len(part)
        assert len(part) <= 7
        assert len(part) == 1 or sum(len(row) + ENVELOPE_BYTES for row in part) <= 600
        assert following == (decode_row(rows[taken]).primary_key if taken < 50 else None)


def test_a_row_that_is_larger_than_a_request_comes_alone() -> None:
    rows = [encode_row((("k", n),), [Column("c", "x" * size, 1)]) for n, size in enumerate((1, 900, 1))]

    found = list(rows_of_requests([page(rows, None)], Limits(max_bytes=600)))

    assert found == [([rows[0]], (("k", 1),)), ([rows[1]], (("k", 2),)), ([rows[2]], None)]


def test_a_table_without_rows_has_an_end() -> None:
    assert list(rows_of_requests([page([], None)], Limits())) == [([], None)]
