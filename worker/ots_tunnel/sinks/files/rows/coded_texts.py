"""Texts of few values as codes: what Arrow's encoder of Parquet takes as it is.

Of a column with a dictionary the encoder looks each text up in a table, to find the code that it gets in the file. The
compiled twin has codes already. An array of these, with the texts beside them, makes the same file without the texts of
all cells and without the search (`python -m tests.bench.sinks.parts` has what is left). All arrays
of a column in a file have the same texts: where they differ, the encoder writes texts from there on. So a file has one
channel.

Example: the actions of three records are the codes 1, 1, 3 of ("", "PUT", "UPDATE", "DELETE").
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import pyarrow as pa

CODED = pa.dictionary(pa.int8(), pa.string())
_COLUMNS, _OF_CELLS = ("action", "channel"), ("operation", "type")


def coded(schema: pa.Schema) -> pa.Schema:
    """The schema with codes for actions, channels, and the operations and types of cells."""
    fields = [field.with_type(CODED) if field.name in _COLUMNS else field for field in schema]
    place = schema.get_field_index("cells")
    members = [field.with_type(CODED) if field.name in _OF_CELLS else field for field in fields[place].type.value_type]
    fields[place] = fields[place].with_type(pa.list_(pa.struct(members)))
    return pa.schema(fields)


def by_code(numbers: type[IntEnum]) -> tuple[str, ...]:
    """The names of an enumeration at the places of their numbers; the others are empty."""
    return tuple(numbers(code).name if code in set(numbers) else "" for code in range(max(numbers) + 1))


def text_array(texts: Sequence[str | None], allowed: Sequence[str], kind: pa.DataType) -> pa.Array:
    """Texts as an array, or as codes.

    Args:
        allowed: what the texts may be, in the order of their codes.
        kind: string or CODED.
    """
    if kind != CODED:
        return pa.array(texts, kind)
    codes = {text: code for code, text in enumerate(allowed)}
    found = pa.array([None if text is None else codes[text] for text in texts], pa.int8())
    return pa.DictionaryArray.from_arrays(found, pa.array(allowed, pa.string()))
