"""Columns of every type as Arrow arrays, and values that do not fit them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.spark.columns import COLUMN_TYPES, build_array, build_batch

VALUES = {
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "binary": st.binary(),
}


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_arrays_hold_the_values(kind: str) -> None:
    @given(st.lists(st.none() | VALUES[kind]))
    def check(values: list[Any]) -> None:
        array = build_array(COLUMN_TYPES[kind], "c", values)
        array.validate(full=True)
        assert array.to_pylist() == values
        assert array.null_count == values.count(None)

    check()


def test_integers_become_doubles() -> None:
    assert build_array(COLUMN_TYPES["double"], "c", [1, None, 0.5]).to_pylist() == [1.0, None, 0.5]


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("bigint", 1.5, "double"),
        ("bigint", True, "boolean"),
        ("double", False, "boolean"),
        ("string", b"x", "binary"),
        ("binary", "secret", "string"),
        ("boolean", 1, "bigint"),
    ],
)
def test_values_of_another_type_are_refused_without_being_shown(kind: str, value: Any, found: str) -> None:
    with pytest.raises(CodecError, match=f"'price': found {found}, the schema says {kind}") as caught:
        build_array(COLUMN_TYPES[kind], "price", [None, value])
    assert "secret" not in str(caught.value)


def test_batches_have_the_types_spark_expects() -> None:
    batch = build_batch([(name, kind, [None]) for name, kind in COLUMN_TYPES.items()])

    assert [str(field.type) for field in batch.schema] == ["int64", "double", "bool", "string", "binary"]


def test_pandas_stays_out_of_the_hot_path() -> None:
    program = (
        "import sys\n"
        "from ots_tunnel.spark.columns import COLUMN_TYPES, build_batch\n"
        "import ots_tunnel.client.table, ots_tunnel.sinks.table.blocking_writer, ots_tunnel.spark.snapshot.copying\n"
        "batch = build_batch([('r', COLUMN_TYPES['binary'], [b'x', None]), ('i', COLUMN_TYPES['bigint'], [1, 2])])\n"
        "batch.column(0).to_pylist()\n"
        "sys.exit('pandas' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)

    assert done.returncode == 0
