"""The emulator's goals, the rows they are measured with, and the file they go to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from tests.bench.emulator_rows import ROW_BYTES, row_of, write_requests
from tests.bench.emulator_target import Goal
from tests.bench.figures import add_to_file


@pytest.mark.parametrize(
    ("goal", "at_least", "met"),
    [(None, True, None), (5, True, True), (6, True, False), (5, False, True), (4, False, False)],
)
def test_goals_are_bounds(goal: float | None, at_least: bool, met: bool | None) -> None:
    assert Goal("rate", 5, goal, "per second", at_least).met is met


def test_figures_of_an_earlier_run_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps([{"name": "worker", "ours": 1}, {"name": "rate", "ours": 1}]))

    add_to_file(path, [Goal("rate", 6, 3, "per second").document()])

    assert json.loads(path.read_text()) == [
        {"name": "worker", "ours": 1},
        {"name": "rate", "ours": 6, "peer": None, "unit": "per second", "ratio": 2, "goal": 3, "met": True},
    ]


def test_a_goal_of_nothing_has_no_ratio() -> None:
    document = Goal("writes", 0, 0, "writes", at_least=False).document()

    assert (document["ratio"], document["met"]) == (None, True)


@pytest.mark.parametrize("version_ms", [None, 1_700_000_000_000])
def test_rows_have_their_size_and_distinct_keys(version_ms: int | None) -> None:
    rows = [row_of(number, version_ms=version_ms) for number in range(401)]
    (*_, last) = [table_pb2.BatchWriteRowRequest.FromString(body) for body in write_requests("t", iter(rows))]

    assert {len(row) - 4 for row in rows} == {ROW_BYTES}
    assert len({decode_row(row).primary_key for row in rows}) == len(rows)
    assert len(last.tables[0].rows) == 1
