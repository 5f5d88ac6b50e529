"""Columns that occurred in no split of a scan: one warning, once every split has reported."""

from __future__ import annotations

import logging
import pickle

import pytest

from ots_tunnel.log_actions import LogAction
from ots_tunnel.spark.reader.occurrence import MAX_OPEN_SCANS, Scan, Seen, SplitSeen, Union, WarnWhenComplete

SCAN = Scan("s1", "t", 2, ("a", "b", "c"))


def seen(rows: int, *columns: str) -> SplitSeen:
    return SplitSeen(rows, frozenset(columns))


def told(caplog: pytest.LogCaptureFixture, *reports: Seen) -> list[str]:
    driver = WarnWhenComplete()
    value: Seen = {}
    for report in reports:
        value = driver.addInPlace(value, report)
    return [record.getMessage() for record in caplog.records]


def test_a_scan_that_is_complete_is_told_in_figures(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    reports = [{SCAN: {split: SplitSeen(5, frozenset("abc"), 2, 700, 0.25)}} for split in (0, 1, 1)]

    assert told(caplog, *reports[:1]) == []
    assert told(caplog, *reports) == ["table 't': 10 rows in 4 pages with 1400 bytes, for which tasks waited 0.5 s"]
    record = caplog.records[0]
    assert record.action is LogAction.SCAN_READ  # type: ignore[attr-defined]  # from extra
    assert {name: getattr(record, name) for name in ("table", "rows", "pages", "bytes", "seconds")} == {
        "table": "t", "rows": 10, "pages": 4, "bytes": 1400, "seconds": 0.5,
    }  # fmt: skip


def test_a_column_that_one_split_has_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    found = told(caplog, {SCAN: {0: seen(5, "a")}}, {SCAN: {1: seen(7, "b")}})

    assert found == ["table 't': none of 12 rows has column 'c': NULL in every row"]
    assert caplog.records[0].action is LogAction.COLUMN_NEVER_SEEN  # type: ignore[attr-defined]  # from extra


@pytest.mark.parametrize(
    "reports",
    [
        [{SCAN: {0: seen(5)}}],
        [{SCAN: {0: seen(5)}}, {SCAN: {0: seen(5)}}, {}],
        [{SCAN: {0: seen(5, "a", "b", "c")}}, {SCAN: {1: seen(5)}}],
        [{SCAN: {0: seen(0)}}, {SCAN: {1: seen(0)}}],
        [{SCAN: {0: seen(5)}}, {Scan("s2", "t", 2, ("a",)): {1: seen(5)}}],
    ],
)
def test_an_unfinished_or_complete_scan_says_nothing(caplog: pytest.LogCaptureFixture, reports: list[Seen]) -> None:
    assert told(caplog, *reports) == []


def test_a_scan_that_is_run_again_warns_again(caplog: pytest.LogCaptureFixture) -> None:
    assert len(told(caplog, *[{SCAN: {split: seen(5)}} for split in (0, 1, 1, 0)])) == 2


def test_executors_get_a_form_that_keeps_complete_scans() -> None:
    executors: Union = pickle.loads(pickle.dumps(WarnWhenComplete()))
    report = {Scan("s", "t", 1, ("a",)): {0: seen(5)}}

    assert type(executors) is Union
    assert executors.addInPlace(executors.zero({}), report) == report


def test_scans_that_never_end_are_forgotten() -> None:
    driver = WarnWhenComplete()
    value: Seen = {}
    for number in range(3 * MAX_OPEN_SCANS):
        value = driver.addInPlace(value, {Scan(str(number), "t", 2, ()): {0: seen(1)}})

    assert len(value) == MAX_OPEN_SCANS
