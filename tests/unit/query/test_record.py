"""The record of a query's progress."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.query.record import (
    MAX_PASSED_GAPS,
    PassedGap,
    QueryProgress,
    QueryRecord,
    all_gaps,
    query_items,
    read_query_record,
)
from ots_tunnel.snapshot.record import PROGRESS_LABEL


def config_map(data: dict[str, str] | None, label: str = "tunnel-1") -> dict[str, Any]:
    return {"metadata": {"name": "orders-stream", "labels": {PROGRESS_LABEL: label}}, "data": data}


@pytest.mark.parametrize(
    "progress",
    [
        QueryProgress(812, 5300, 4, 16),
        QueryProgress(),
        QueryProgress(0, 0, 0, 0, "OTSTunnelExpired: gone", is_final=True),
        QueryProgress(1, passed_gaps=(PassedGap("c1", 1_700_000_000, 1_700_003_600), PassedGap("ü", 1, 1_700_003_601))),
    ],
)
def test_a_record_is_read_as_it_was_written(progress: QueryProgress) -> None:
    stored = config_map(query_items(progress, "tunnel-1", 1_800_000_000.5))

    assert read_query_record(stored) == QueryRecord("tunnel-1", progress, 1_800_000_000.5)


@pytest.mark.parametrize("stored", [config_map(None), config_map(query_items(QueryProgress(7), "tunnel-0", 1.0))])
def test_items_of_nobody_or_of_another_tunnel_are_none(stored: dict[str, Any]) -> None:
    assert read_query_record(stored) == QueryRecord("tunnel-1")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("batchId", "-1"),
        ("lagSeconds", "4.5"),
        ("updated", "now"),
        ("passedGaps", "c1"),
        ("passedGaps", "7"),
        ("passedGaps", '[["c1", 1]]'),
        ("passedGaps", '[["c1", 1, null]]'),
        ("passedGaps", '[["c1", 1, 1e999]]'),
        ("passedGaps", '[["c1", 1, 99999999999999]]'),
        ("passedGaps", '[["c1", 2, 1]]'),
        ("passedGaps", "[[1, 1, 2]]"),
    ],
)
def test_a_damaged_item_is_named(key: str, text: str) -> None:
    stored = config_map({**query_items(QueryProgress(7, 1, 1, 1), "tunnel-1", 1.0), key: text})

    with pytest.raises(CodecError, match=rf"data\.{key}: "):
        read_query_record(stored)


def test_of_too_many_gaps_the_latest_are_kept() -> None:
    gaps = [PassedGap("c1", second, second + 1) for second in range(MAX_PASSED_GAPS + 2)]

    assert all_gaps(reversed(gaps), gaps) == tuple(gaps[2:])
