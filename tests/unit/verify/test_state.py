"""A comparison's state and report: what is stored, shown and refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.verify.comparison import CellDifference, Comparison, Difference, DifferingRow, ShownValue
from ots_tunnel.verify.report import Outcome, report_document, report_lines
from ots_tunnel.verify.state import VerifyState, default_name, refuse_other_task
from ots_tunnel.verify.state_document import TablePlace, VerifyTask

PLACE = TablePlace(endpoint="http://h:1", instance="shop", table="orders")
COPY = PLACE.model_copy(update={"table": "copy"})
TASK = VerifyTask(source=PLACE, destination=COPY, max_versions=3, show=3)
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SHOWN = CellDifference("x", 7, ShownValue("DOUBLE", "-0.0"), None)


def bounds(slices: int) -> tuple[PrimaryKey, ...]:
    inner: list[PrimaryKey] = [(("a", f"k{number}"), ("b", Marker.INF_MIN)) for number in range(1, slices)]
    low: PrimaryKey = (("a", Marker.INF_MIN), ("b", Marker.INF_MIN))
    return (low, *inner, (("a", Marker.INF_MAX), ("b", Marker.INF_MAX)))


def state_of(slices: int = 4, **changes: object) -> VerifyState:
    return VerifyState(TASK.model_copy(update=changes), STARTED, bounds(slices))


def missing(number: int) -> DifferingRow:
    return DifferingRow(Difference.MISSING, (("a", b"\x00"), ("b", number)), (SHOWN,), 2)


def result(*rows: DifferingRow, rows_in_all: int = 10) -> Comparison:
    return Comparison(rows=rows_in_all, cells=20, versions=30, missing=len(rows), settled=1, first=list(rows), keep=3)


def test_finished_slices_are_left_out() -> None:
    state = state_of()
    state.finish(2, result())

    assert state.waiting == (0, 1, 3)
    assert (state.slice(1).start, state.slice(1).end) == bounds(4)[1:3]


def test_a_state_survives_its_document() -> None:
    state = state_of(sample_percent=75, seed=5, recheck_seconds=2.5)
    for number in state.chosen[:2]:
        state.finish(number, result(missing(number)))

    again = VerifyState.read(state.document(), "here")

    assert (again.task, again.started, again.chosen, again.done) == (
        state.task,
        state.started,
        state.chosen,
        state.done,
    )
    assert again.total() == state.total()
    assert again.waiting == state.waiting
    assert again.slice(3) == state.slice(3)
    assert again.document() == state.document()


@given(st.permutations(range(6)), st.integers(0, 6))
def test_the_first_differences_are_in_key_order_whichever_slice_finishes_first(ended: list[int], stop: int) -> None:
    state = state_of(6)
    for position, number in enumerate(ended):
        if position == stop:
            state = VerifyState.read(state.document(), "here")
        state.finish(number, result(missing(2 * number), missing(2 * number + 1)))

    total = state.total()
    assert [row.primary_key[1][1] for row in total.first] == [0, 1, 2]
    assert (total.rows, total.versions, total.missing, total.settled) == (60, 180, 12, 6)


def test_an_empty_state_is_equal() -> None:
    assert state_of().total() == Comparison(keep=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: document.pop("bounds"), "here: not the state of a comparison: bounds: Field required"),
        (lambda document: document.update(format="2"), "here: format: found '2', allowed is 'ots-tunnel verify 2'"),
        (
            lambda document: document.update(bounds=["AAAA"] * 2),
            "here: not the state of a comparison: buffer begins with",
        ),
        (lambda document: document.update(bounds=["*"] * 2), "here: not the state of a comparison"),
        (lambda document: document.update(bounds=[]), "here: bounds: found 0, needed are at least 2"),
        (lambda document: document["done"].update({"1": [1]}), "here: done: slice 1 has 1 counts, needed are 11"),
    ],
)
def test_a_damaged_state_is_refused(change: object, message: str) -> None:
    document = json.loads(state_of().document())
    change(document)

    with pytest.raises(ConfigError) as caught:
        VerifyState.read(json.dumps(document), "here")

    assert message in str(caught.value)


def test_another_task_is_refused_with_both_named() -> None:
    refuse_other_task(TASK, TASK, "file")
    other = TASK.model_copy(update={"sample_percent": 5.0, "destination": PLACE})

    with pytest.raises(ConfigError) as caught:
        refuse_other_task(TASK, other, "file")

    text = str(caught.value)
    assert text.startswith("file: the state of another comparison: ")
    assert "destination: found shop/copy at http://h:1, wanted is shop/orders at http://h:1" in text
    assert "samplePercent: found None, wanted is 5.0" in text
    assert "--restart" in text


def test_the_default_name_depends_on_both_tables() -> None:
    name = default_name(PLACE, COPY)

    assert name.startswith("verify-orders-")
    assert name == default_name(PLACE, COPY)
    assert name != default_name(PLACE, COPY.model_copy(update={"endpoint": "http://other:1"}))


def test_reports_say_what_was_left_out() -> None:
    state = state_of(recheck_seconds=30)
    found = Comparison(rows=5, cells=6, versions=7, missing=2, near_expiry=3, settled=4, first=[missing(1)], keep=1)
    lines = list(report_lines(Outcome(state, found, 1.25, ("beware",))))

    assert lines == [
        "different: shop/orders at http://h:1 | shop/copy at http://h:1",
        "the destination lacks 2 rows",
        "5 rows, 6 cells, 7 versions compared in 1.2 s; 2 missing, 0 extra, 0 different",
        "3 differing versions left out: they are near the end of their time to live",
        "4 rows differed at first and were equal 30 s later",
        "missing: a=b'\\x00', b=1",
        "    x @ 7: DOUBLE -0.0 | absent",
        "    and 2 more versions",
        "and 1 more",
    ]
    document = report_document(Outcome(state, found, 1.25, ("beware",)))
    assert document["first"][0]["key"] == {"a": {"base64": "AA=="}, "b": 1}
    assert (document["notes"], document["sample"], document["started"]) == (
        ["beware"],
        None,
        "2026-01-02T03:04:05+00:00",
    )
    json.dumps(document, allow_nan=False)


@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_replaced_table_makes_another_comparison(side: str) -> None:
    before, after = ({f"{side}_created": STARTED.replace(year=year)} for year in (2025, 2026))
    found, wanted = TASK.model_copy(update=before), TASK.model_copy(update=after)
    with pytest.raises(ConfigError, match=f"{side}Created: found 2025.*wanted is 2026.*--restart"):
        refuse_other_task(found, wanted, "here")
    for known, unknown in ((found, TASK), (TASK, wanted)):
        refuse_other_task(known, unknown, "here")
