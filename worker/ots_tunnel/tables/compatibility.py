"""Requirements for a destination table: the source's keys, versions and lifetime, and a raised deviation; pure.

Source: docs/architecture.md 4.3 and 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ots_tunnel.model import KeyColumn
from ots_tunnel.tables.schema import TableSchema

#: The greatest deviation of a table, INT64_MAX / 1000000 seconds: every version is accepted (docs/data-plane.md 2.5).
ANY_DEVIATION = 9_223_372_036_854

#: Seconds of a century: this deviation accepts all versions from 1970 on. A smaller one may refuse old cells.
COVERING_DEVIATION = 100 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a table cannot be the destination: the field, what was found and what is needed."""

    field: str
    found: str
    needed: str

    def __str__(self) -> str:
        return f"{self.field}: found {self.found}, needed {self.needed}"


def check_destination(source: TableSchema, destination: TableSchema) -> tuple[Problem, ...]:
    """Every reason why `destination` cannot hold an equal copy of `source`; empty if it can."""
    return (
        *_key_problems(source.keys, destination.keys),
        *_version_problems(source, destination),
        *_ttl_problems(source, destination),
        *_write_problems(destination),
    )


def planned_schema(source: TableSchema, name: str) -> TableSchema:
    """The table to create for a copy of `source`.

    Auto-increment keys become plain integers: the service restricts explicit values in such a column, and new numbers
    would break updates, deletes and repeated writes (docs/architecture.md 4.4).
    """
    return replace(
        source,
        name=name,
        keys=tuple(replace(key, auto_increment=False) for key in source.keys),
        deviation_seconds=ANY_DEVIATION,
        allow_update=True,
    )


def _key_problems(source: tuple[KeyColumn, ...], found: tuple[KeyColumn, ...]) -> tuple[Problem, ...]:
    needed = tuple(replace(key, auto_increment=False) for key in source)
    return () if needed == found else (Problem("primary key", _key_text(found), _key_text(needed)),)


def _key_text(keys: tuple[KeyColumn, ...]) -> str:
    return ", ".join(f"{key.name} {key.type.name}{' AUTO_INCREMENT' if key.auto_increment else ''}" for key in keys)


def _version_problems(source: TableSchema, found: TableSchema) -> tuple[Problem, ...]:
    if found.max_versions >= source.max_versions:
        return ()
    return (Problem("max versions", str(found.max_versions), f"at least {source.max_versions}, as the source"),)


def _ttl_problems(source: TableSchema, found: TableSchema) -> tuple[Problem, ...]:
    """A lifetime shorter than the source's refuses or hides cells that the source still has."""
    if found.ttl_seconds == -1 or found.ttl_seconds >= source.ttl_seconds > 0:
        return ()
    needed = "-1, as the source" if source.ttl_seconds == -1 else f"-1 or at least {source.ttl_seconds}, as the source"
    return (Problem("time to live seconds", str(found.ttl_seconds), needed),)


def _write_problems(found: TableSchema) -> tuple[Problem, ...]:
    problems = []
    if found.deviation_seconds < COVERING_DEVIATION:
        needed = f"at least {COVERING_DEVIATION}, best {ANY_DEVIATION}: cells keep their versions"
        problems.append(Problem("max version deviation seconds", str(found.deviation_seconds), needed))
    if not found.allow_update:
        problems.append(Problem("allow update", "false", "true: changes arrive as updates"))
    return tuple(problems)
