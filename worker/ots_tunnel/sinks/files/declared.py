"""The attribute columns that a document declares for typed files, and what fits them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ots_tunnel.config import FilesSinkConfig
from ots_tunnel.model import Value

#: Types that a document can name, which are the change log's, and the values of each.
PYTHON_TYPES: Mapping[str, type] = {"integer": int, "double": float, "boolean": bool, "string": str, "binary": bytes}
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
