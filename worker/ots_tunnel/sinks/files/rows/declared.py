"""The attribute columns that a document declares for typed files, and what fits them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ots_tunnel.config import FilesSinkConfig
from ots_tunnel.model import Value
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.protocol.plainbuffer.tags import BLOB, BOOLEAN, DOUBLE, INTEGER, STRING

#: Types that a document can name, which are the change log's, and the values of each.
PYTHON_TYPES: Mapping[str, type] = {"integer": int, "double": float, "boolean": bool, "string": str, "binary": bytes}
#: Found and allowed of an attribute without a column, where these are refused.
UNKNOWN_TEXT = "found, allowed are those of sink.files.columns, as unknownColumns says"
#: Tags of the wire of the types.
_TAGS = {"integer": INTEGER, "double": DOUBLE, "boolean": BOOLEAN, "string": STRING, "binary": BLOB}
_WORDS = {kind: word for word, kind in PYTHON_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared columns.

    Args:
        types: name of each to its type, in their order.
        keeps_unknown: whether attributes without a column are kept in `others`; otherwise their records are refused.
    """

    types: Mapping[str, str]
    keeps_unknown: bool = True

    @classmethod
    def of(cls, config: FilesSinkConfig) -> Declared | None:
        """Those of a section of the document; None where it has none."""
        if config.columns is None:
            return None
        return cls({column.name: column.type for column in config.columns}, config.unknown_columns != "Error")

    def unknown(self, cells: Sequence[Column]) -> str | None:
        """The name of the first cell that has no column; None where all have one."""
        return next((cell.name for cell in cells if cell.name not in self.types), None)

    @property
    def tags(self) -> tuple[tuple[bytes, int], ...]:
        """Name and tag of each column, for the compiled twin."""
        return tuple((name.encode(), _TAGS[kind]) for name, kind in self.types.items())


def as_declared(kind: str, value: Value) -> Value | None:
    """The value as a column of this type holds it; None where it does not fit.

    The one conversion is that of an integer to a double, and only where both are equal: writers of many languages put
    5 where they mean 5.0.
    """
    if type(value) is PYTHON_TYPES[kind]:
        return value
    if kind == "double" and type(value) is int and float(value) == value:
        return float(value)
    return None


def misfit_text(kind: str, value: Value) -> str:
    """Found and allowed of a value that does not fit; the value itself is not in it, because logs repeat the text."""
    found = "an integer that no double is equal to" if kind == "double" and type(value) is int else _WORDS[type(value)]
    return f"found {found}, allowed is {kind}"
