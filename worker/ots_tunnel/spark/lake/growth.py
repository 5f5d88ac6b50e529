"""Which columns a table gets for attributes that it does not know yet. Pure.

Tablestore keeps types per cell, and attributes come and go without a schema. A value that no column can tell is in the
column of `OTHERS`, so that none is lost. The setting says what happens to an attribute without a column:

    add      it gets one, of the type of its first values
    map      it stays in `OTHERS`
    refuse   the query fails with a line that names the attribute

Example: the table has the columns id and price. A batch has the attributes note (strings), size (integers and doubles)
and mixed (integers and strings). With `add` it gets note STRING and size DOUBLE; mixed stays in `OTHERS`, and gets a
column with the first batch in which its values have one type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.query.spelling import spelled

ADD, MAP, REFUSE = "add", "map", "refuse"
GROWTHS: Final = (ADD, MAP, REFUSE)
#: Types of columns in Spark by the member of a value that they take (`arrow_rows.VALUE`).
TYPES: Final[Mapping[str, str]] = {
    "integer": "bigint",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "binary": "binary",
}
_NUMBERS: Final = frozenset(("integer", "double"))


def check_growth(growth: str) -> str:
    """One of `GROWTHS`.

    Raises:
        ConfigError: another word.
    """
    if growth not in GROWTHS:
        raise ConfigError(f"growth: found {growth!r}, allowed are {', '.join(GROWTHS)}")
    return growth


def new_columns(
    present: Iterable[str], seen: Mapping[str, Iterable[str]], is_taken: Callable[[str], bool]
) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns to add, by name.

    Args:
        present: every column of the table. Names that differ in case alone are one to Spark, so the second of them
            gets no column.
        seen: attributes with the members of their values, names of `TYPES`.
        is_taken: whether the table's format needs a name itself.
    """
    taken = {spelled(name) for name in present}
    found = []
    for name in sorted(seen):
        kind = _kind_of(frozenset(seen[name]))
        # an empty name, or one with a newline, is no name for a column
        if kind is None or spelled(name) in taken or not name.isprintable() or not name.strip():
            continue
        if is_taken(name):
            continue
        taken.add(spelled(name))
        found.append((name, TYPES[kind]))
    return tuple(found)


def _kind_of(kinds: frozenset[str]) -> str | None:
    if len(kinds) == 1:
        return next(iter(kinds))
    return "double" if kinds == _NUMBERS else None
