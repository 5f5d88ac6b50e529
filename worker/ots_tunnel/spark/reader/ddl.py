"""Column lists in the option `columns`, and the types that columns may have. Pure.

The planning process of Python sources has no JVM, so Spark's own parser cannot be asked. A list is that of Spark's DDL,
limited to what a table can hold: names, in backquotes where needed, with a type each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ots_tunnel.errors import ConfigError

#: A backquoted name, something in parentheses, or other text without a comma.
_PART = re.compile(r"(?:`(?:[^`]|``)*`|\([^()]*\)|[^,`()])+")
_COLUMN = re.compile(r"\s*(`(?:[^`]|``)+`|[^\s`:]+)\s*:?\s*(.*?)\s*", re.DOTALL)

#: Types of Spark's DDL by the name that Spark gives them (`DataType.simpleString`).
TYPES: Final = ("bigint", "double", "boolean", "string", "binary")
_SYNONYMS = {"long": "bigint"}
#: What to use for other types: a table keeps integers of 64 bits, and no decimals, dates or nested values.
_USE = {
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer"), "bigint"),
    **dict.fromkeys(("float", "real", "decimal", "dec", "numeric"), "double"),
    **dict.fromkeys(("char", "character", "varchar", "text"), "string"),
    **dict.fromkeys(("blob", "bytes", "varbinary"), "binary"),
    "bool": "boolean",
    **dict.fromkeys(
        ("date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz"), "bigint or string, as stored, and cast it"
    ),
}


def parse_columns(text: str) -> tuple[tuple[str, str], ...]:
    """Names and types of a list such as ``price DOUBLE, `order id` BIGINT``.

    Raises:
        ConfigError: the list is malformed, a type is missing or not one of `TYPES`, or a name comes twice; names it.
    """
    columns = tuple((name, check_type(name, kind)) for name, kind in _split(text))
    check_repeated([name for name, _ in columns])
    return columns


def parse_names(text: str) -> tuple[tuple[str, str], ...]:
    """The same where types say nothing and may be left out, as in mode raw.

    Raises:
        ConfigError: see `parse_columns`.
    """
    columns = tuple((name, "") for name, kind in _split(text) if not kind or check_type(name, kind))
    check_repeated([name for name, _ in columns])
    return columns


def check_type(name: str, kind: str) -> str:
    """One of `TYPES`.

    Args:
        kind: a type in Spark's DDL or as `simpleString` writes it.

    Raises:
        ConfigError: another type; names the column and says what to use.
    """
    found = " ".join(kind.lower().split())
    known = _SYNONYMS.get(found, found)
    if known in TYPES:
        return known
    if found.endswith(" not null"):
        raise ConfigError(f"column {name!r}: found NOT NULL, allowed are columns that may hold NULL")
    word = re.split(r"[^a-z_]", found, maxsplit=1)[0]
    hint = f"; use {_USE[word]}" if word in _USE else ""
    raise ConfigError(
        f"column {name!r}: found {f'type {found}' if found else 'no type'}, allowed are {', '.join(TYPES)}{hint}"
    )


def check_repeated(names: Sequence[str]) -> None:
    """Refuse a name that comes twice.

    Raises:
        ConfigError: names it.
    """
    repeated = [name for index, name in enumerate(names) if name in names[:index]]
    if repeated:
        raise ConfigError(f"column {repeated[0]!r}: found twice, allowed is once")


def _split(text: str) -> list[tuple[str, str]]:
    if not text.strip():
        return []
    parts = _PART.findall(text)
    found = [_COLUMN.fullmatch(part) for part in parts]
    if ",".join(parts) != text or None in found:
        raise ConfigError(
            f"option 'columns': found {text!r}, allowed is a list such as price DOUBLE, `order id` BIGINT"
        )
    return [(_unquoted(match[1]), match[2]) for match in found if match is not None]


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
