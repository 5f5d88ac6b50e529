"""Rows of whole batches: those of `fold`, whatever the changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.model import Action, CellOp, ChannelId, SequenceInfo
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.arrow_rows import VALUE, VALUE_TYPES, ArrowRows, schema_of
from ots_tunnel.spark.lake import row_frames
from ots_tunnel.spark.lake.fold import fold
from ots_tunnel.spark.lake.row_frames import folded

VERSIONS = pa.map_(pa.string(), pa.int64())
Change = tuple[Action, tuple[Column, ...]]
KEYS = [
    (("name", name), ("id", number), ("raw", raw)) for name in ("", "ü") for number in (0, 1) for raw in (b"", b"x")
]

names = st.sampled_from(["a", "b", "ü", ""])
values = st.integers(-2, 2) | st.sampled_from([0.5, True, "", "text", b"", b"\0"])
versions = st.integers(1, 3)
puts = st.builds(Column, names, values, versions)
deletions = st.builds(lambda name, version: Column(name, None, version, CellOp.DELETE_ONE_VERSION), names, versions)
all_deletions = st.builds(lambda name: Column(name, None, None, CellOp.DELETE_ALL_VERSIONS), names)
changes = st.tuples(
    st.sampled_from(Action),
    st.lists(puts, max_size=4).map(tuple) | st.lists(puts | deletions | all_deletions, max_size=3).map(tuple),
)
runs = st.lists(st.lists(changes, min_size=1, max_size=5), min_size=1, max_size=len(KEYS))


def batches(some: Sequence[Sequence[Change]], rows: int, *, is_large: bool = False) -> list[pa.RecordBatch]:
    """The changes of each key behind those of the key before, in batches of so many rows.

    Args:
        is_large: in the types that Spark takes where a batch may have more than 2 GiB of texts.
    """
    made = ArrowRows()
    for key, run in zip(KEYS, some, strict=False):
        for place, (action, cells) in enumerate(run):
            body = encode_row(key, cells, delete=action is Action.DELETE, sequence=SequenceInfo(0, 5, place))
            made.add(Record(action, body), ChannelId("c"))
    whole = made.batch(schema_of(KEYS[0]))
    if is_large:
        (whole,) = pa.Table.from_batches([whole]).cast(_large(whole.schema)).combine_chunks().to_batches()
    return [whole.slice(first, rows) for first in range(0, len(whole), rows)]


def _large(found: Any) -> Any:
    """A schema or type with texts of any length."""
    if isinstance(found, pa.Schema):
        return pa.schema([field.with_type(_large(field.type)) for field in found])
    if pa.types.is_struct(found):
        return pa.struct([field.with_type(_large(field.type)) for field in found])
    if pa.types.is_list(found):
        return pa.list_(found.value_field.with_type(_large(found.value_type)))
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(found, found)


def expected(some: Sequence[Sequence[Change]]) -> dict[Any, Any]:
    """Value and version by attribute, by key."""
    rows = {key: fold(None, run) for key, run in zip(KEYS, some, strict=False)}
    return {
        key: None
        if row is None
        else {name: (VALUE_TYPES[type(cell.value)][0], cell.value, cell.version) for name, cell in row.items()}
        for key, row in rows.items()
    }


def found(some: Sequence[pa.RecordBatch]) -> dict[Any, Any]:
    rows: dict[Any, Any] = {}
    types = {"key": some[0].schema.field("key").type, "row": pa.map_(pa.string(), VALUE), "versions": VERSIONS}
    for batch in folded(some):
        batch.validate(full=True)
        assert dict(zip(batch.schema.names, batch.schema.types, strict=True)) == types
        for row in batch.to_pylist():
            key = tuple(row["key"].items())
            assert key not in rows, "one row for each key"
            if row["row"] is None:
                assert row["versions"] is None
                rows[key] = None
                continue
            by_name = dict(row["versions"])
            assert len(by_name) == len(row["versions"]) == len(row["row"])
            rows[key] = {name: (*_member(value), by_name[name]) for name, value in row["row"]}
    return rows


def _member(value: dict[str, Any]) -> tuple[str, Any]:
    """The member that is set."""
    (member,) = ((name, found) for name, found in value.items() if found is not None)
    return member


@given(runs, st.integers(1, 40), st.booleans())
def test_rows_are_those_of_fold(some: list[list[Change]], rows: int, is_large: bool) -> None:
    assert found(batches(some, rows, is_large=is_large)) == expected(some)


@pytest.mark.parametrize("missing", ["version", "type"])
def test_a_put_without_version_or_value_is_refused(missing: str) -> None:
    (batch,) = batches([[(Action.PUT, (Column("a", 1, 5),))]], 10)
    (row,) = batch.to_pylist()
    row["cells"][0][missing] = None
    damaged = pa.RecordBatch.from_pylist([row], batch.schema)

    with pytest.raises(CodecError):
        list(folded([damaged]))


def test_runs_of_puts_make_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    some: list[list[Change]] = [
        [(Action.PUT, (Column("a", 1, 5),)), (Action.UPDATE, (Column("a", 2, 6), Column("b", b"x", 6)))],
        [(Action.PUT, (Column("a", 1, 5),)), (Action.DELETE, ())],
        [(Action.UPDATE, ())],
    ]
    monkeypatch.setattr(row_frames, "after", lambda *_: pytest.fail("a change was folded by itself"))

    assert found(batches(some, 2)) == expected(some)


def test_a_run_with_the_deletion_of_a_cell_is_folded_change_by_change(monkeypatch: pytest.MonkeyPatch) -> None:
    some: list[list[Change]] = [
        [(Action.PUT, (Column("a", 1, 5),))],
        [(Action.UPDATE, (Column("a", None, None, CellOp.DELETE_ALL_VERSIONS), Column("b", 2, 6)))],
        [(Action.PUT, (Column("a", 3, 5),))],
    ]
    folded_one_by_one: list[Action] = []
    fold_one = row_frames.after

    def counted(row: Any, action: Action, cells: Any) -> Any:
        folded_one_by_one.append(action)
        return fold_one(row, action, cells)

    monkeypatch.setattr(row_frames, "after", counted)

    assert found(batches(some, 10)) == expected(some)
    assert folded_one_by_one == [Action.UPDATE]
    by_puts, one_by_one = folded(batches(some[:2], 10))
    assert by_puts.schema.equals(one_by_one.schema)
