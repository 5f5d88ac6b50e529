"""Values of a mirror in columns of Spark and back: none is lost, and none becomes another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from ots_tunnel.model import Action, Value
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.query.spelling import OTHERS, VERSIONS, spelled
from ots_tunnel.spark.lake.fold import after
from ots_tunnel.spark.lake.mirror_rows import in_columns
from ots_tunnel.spark.lake.projection import cells_of
from ots_tunnel.spark.lake.row_frames import decoded
from ots_tunnel.spark.lake.tables.statements import VALUE

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.xdist_group("spark"), pytest.mark.lasts(20)]

INTEGERS = (0, 5, -(1 << 63), (1 << 63) - 1, (1 << 63) - 2, (1 << 53) + 1, 1 << 62)
DOUBLES = (0.0, -0.0, 1e300, float("nan"), float("inf"), float(1 << 63))
VALUES: tuple[Value, ...] = (*INTEGERS, *DOUBLES, True, False, "", "Ä", b"", b"\x00\xff")
#: Attributes with columns; names of the frames' own columns are among them.
COLUMNS = (
    ("a", "bigint"),
    ("row", "double"),
    ("gone", "boolean"),
    ("versions", "string"),
    ("key", "binary"),
    ("odd `name`, (1).\\'", "double"),
    ("${spark.app.name}", "bigint"),
)
OWN = ((OTHERS, f"map<string,{VALUE}>"), (VERSIONS, "map<string,bigint>"))


def frame(spark: Any, rows: list[Mapping[str, Value]]) -> Any:
    """Rows with the keys 0, 1 and so on."""
    images = [
        encode_row((("id", number),), [Column(name, value, number) for name, value in row.items()])
        for number, row in enumerate(rows)
    ]
    batch = pa.RecordBatch.from_pydict({"row": pa.array(images, pa.binary())})
    return spark.createDataFrame(pa.Table.from_batches(list(decoded([batch], (("id", "bigint"),)))))


def exact(value: Any) -> tuple[str, str]:
    """Not equal for -0.0 and 0.0, 1 and True, but for NaN and NaN."""
    return type(value).__name__, repr(value)


def test_each_value_is_in_one_place_and_comes_back(spark: Any) -> None:
    rows: list[Mapping[str, Value]] = [{name: value for name, _ in COLUMNS} | {"A": value} for value in VALUES]

    stored = in_columns(frame(spark, rows), ["id"], [("id", "bigint"), *COLUMNS, *OWN])
    assert stored.columns == ["id", *(name for name, _ in COLUMNS), OTHERS, VERSIONS]
    back = stored.select("id", cells_of(COLUMNS, OTHERS, VERSIONS).alias("cells")).orderBy("id").collect()

    for number, (row, found) in enumerate(zip(rows, back, strict=True)):
        cells = [Column(cell.name, cell.value[cell.type], cell.version) for cell in found.cells]
        assert len(cells) == len(row), f"{row} is {cells}"
        values = {name: exact(cell.value) for name, cell in (after(None, Action.PUT, cells) or {}).items()}
        assert values == {name: exact(_in_column(name, value)) for name, value in row.items()}
        assert {cell.timestamp_ms for cell in cells} == {number}


def _in_column(name: str, value: Value) -> Value:
    """The value as its column has it: a double where a column of doubles takes an equal integer."""
    takes = dict(COLUMNS).get(name) == "double" and type(value) is int and float(value) == value
    return float(value) if takes else value


def test_letters_that_are_one_to_java_are_spelled_as_one(spark: Any) -> None:
    letter = spark.sparkContext._jvm.java.lang.Character  # noqa: SLF001 - Java's own rule is the judge
    spellings: dict[int, set[str]] = {}
    for code in range(0x10000):
        each = chr(code)
        if len({each, each.lower(), each.upper(), each.title()}) > 1:
            # what `String.equalsIgnoreCase` compares at last
            spellings.setdefault(letter.toLowerCase(letter.toUpperCase(code)), set()).add(spelled(each))

    assert len(spellings) > 1000
    assert {code: found for code, found in spellings.items() if len(found) > 1} == {}


def test_a_table_may_have_a_thousand_columns(spark: Any) -> None:
    names = [f"a{number:04}" for number in range(1000)]
    row: Mapping[str, Value] = {names[0]: 1, names[-1]: 2}

    rows = frame(spark, [row])
    (found,) = in_columns(rows, ["id"], [("id", "bigint"), *((name, "bigint") for name in names), *OWN]).collect()

    assert (found[names[0]], found[names[-1]], found[OTHERS]) == (1, 2, {})
