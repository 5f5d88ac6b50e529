"""Which columns a table may have together, and which it lacks. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ots_tunnel.errors import QueryRefused
from ots_tunnel.query.spelling import spelled
from ots_tunnel.spark.lake.projection import attribute_columns


def check_names(key: Iterable[str], own: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse names of a table of which two are one column.

    Args:
        key: of the source's key.
        own: of the mirror's own columns.
        columns: of the argument `columns`.

    Raises:
        QueryRefused: names both.
    """
    taken = {spelled(name): name for name in own}
    given = [
        *(("option 'table': found key column", name) for name in key),
        *(("columns: found", name) for name in columns),
    ]
    for found, name in given:
        if spelled(name) in taken:
            raise QueryRefused(
                f"{found} {name!r}, which is one column with {taken[spelled(name)]!r} to Spark; allowed are names that "
                "differ in more than case, also from the mirror's own"
            )
        taken[spelled(name)] = name


def check_taken(title: str, is_taken: Callable[[str], bool], key: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse columns that a mirror is to get and whose names its format needs itself: each batch would fail.

    Args:
        title: of the format.
        is_taken: whether it needs a name.
        key: of the source's key.
        columns: of the argument `columns`.

    Raises:
        QueryRefused: names one.
    """
    for name in key:
        if is_taken(name):
            raise QueryRefused(
                f"option 'table': found key column {name!r}, a name that {title} needs itself; allowed are a change "
                "log, whose key is one column, and a mirror in another format"
            )
    for name in columns:
        if is_taken(name):
            raise QueryRefused(
                f"columns: found {name!r}, a name that {title} needs itself; allowed are other names: an attribute "
                "without a column is in the map of the others"
            )


def check_types(path: str, present: Sequence[tuple[str, str]], own: Iterable[str]) -> None:
    """Refuse a mirror with a column that no attribute can have: its owner has added it.

    Args:
        path: of the table, for the message.
        present: names and types.
        own: names of the mirror's own columns.

    Raises:
        QueryRefused: names the column and its type.
    """
    for name, kind in present:
        if name not in own and not attribute_columns([(name, kind)]):
            raise QueryRefused(
                f"path {path!r}: found column {name} {kind}, whose type no attribute has; allowed are the mirror's own "
                "columns: drop this one, nothing but the query writes to the table"
            )


def lacking(
    path: str, present: Sequence[tuple[str, str]], wanted: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """The wanted columns that a table lacks.

    Args:
        path: of the table, for the message.
        present, wanted: names and types.

    Raises:
        QueryRefused: the table has one of them in another type, or in letters of another case.
    """
    missing = tuple(column for column in wanted if column not in present)
    known = {spelled(name): f"{name} {kind}" for name, kind in present}
    for name, kind in missing:
        if spelled(name) in known:
            raise QueryRefused(
                f"columns: found {name} {kind}, but table {path!r} has {known[spelled(name)]}; allowed is that column, "
                "or a new path"
            )
    return missing
