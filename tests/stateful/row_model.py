"""A model of docs/data-plane.md 2.5 and 2.6, as dictionaries: key -> column -> version -> value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ots_tunnel.model import Action, CellOp
from ots_tunnel.protocol.plainbuffer.column import Column

Row = dict[str, dict[int, Any]]
Cells = list[tuple[str, Any, int]]

OK, INVALID, FAILED = "", "OTSParameterInvalid", "OTSConditionCheckFail"
DELETIONS = (CellOp.DELETE_ALL_VERSIONS, CellOp.DELETE_ONE_VERSION)


class Change(NamedTuple):
    """One row of a write; `exists` is the expected existence, None for either."""

    action: Action
    key: int
    columns: tuple[Column, ...] = ()
    exists: bool | None = None
    test: Test | None = None


class Test(NamedTuple):
    """A column condition or filter on one column, or on several of them."""

    __test__ = False

    comparator: str
    column: str = ""
    value: Any = None
    if_missing: bool = True
    latest_only: bool = True
    parts: tuple[Test, ...] = ()

    def passes(self, key: int | None, row: Row) -> bool:
        """Whether a row passes; a row that does not exist has neither key nor cells."""
        match self.comparator:
            case "NOT":
                return not self.parts[0].passes(key, row)
            case "AND":
                return all(part.passes(key, row) for part in self.parts)
            case "OR":
                return any(part.passes(key, row) for part in self.parts)
        values = [value for _, value in sorted(row.get(self.column, {}).items(), reverse=True)]
        if self.column == "k" and key is not None:
            values = [key]
        if self.comparator in ("EXIST", "NOT_EXIST"):
            return bool(values) == (self.comparator == "EXIST")
        if not values:
            return self.if_missing
        return any(self._compares(value) for value in (values[:1] if self.latest_only else values))

    def _compares(self, value: Any) -> bool:
        if type(value) is not type(self.value):
            return self.comparator == "NOT_EQUAL"
        return _COMPARE[self.comparator](_ordered(value), _ordered(self.value))


def _row_of(cells: Cells) -> Row:
    """A filter sees what a read selects."""
    row: Row = {}
    for name, value, version in cells:
        row.setdefault(name, {})[version] = value
    return row


def _ordered(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "EQUAL": lambda found, wanted: found == wanted,
    "NOT_EQUAL": lambda found, wanted: found != wanted,
    "GREATER_THAN": lambda found, wanted: found > wanted,
    "GREATER_EQUAL": lambda found, wanted: found >= wanted,
    "LESS_THAN": lambda found, wanted: found < wanted,
    "LESS_EQUAL": lambda found, wanted: found <= wanted,
}


class Wanted(NamedTuple):
    """The arguments of a read."""

    names: frozenset[str] = frozenset()
    versions: int | None = None
    times: tuple[int, int] | None = None
    columns: tuple[str | None, str | None] = (None, None)
    test: Test | None = None


def _increments(change: Change) -> bool:
    return any(column.op is CellOp.INCREMENT for column in change.columns)


@dataclass
class Rows:
    """One table; times are milliseconds, `ttl` and `deviation` seconds."""

    now_ms: int
    versions: int = 3
    ttl: int = -1
    deviation: int = 10**9
    stored: dict[int, Row] = field(default_factory=dict)
    log: list[tuple[int, Action]] = field(default_factory=list)

    # Reading

    def visible(self, key: int) -> Row | None:
        """The row as readers see it."""
        row = self.stored.get(key)
        if row is None or self.ttl < 0:
            return row
        oldest = self.now_ms - self.ttl * 1000
        alive = {
            name: {version: value for version, value in versions.items() if version >= oldest}
            for name, versions in row.items()
        }
        alive = {name: versions for name, versions in alive.items() if versions}
        return alive if alive or not row else None

    def read(self, key: int, wanted: Wanted) -> Cells | None:
        """The answer to a read of one row, None for no row."""
        row = self.visible(key)
        if row is None:
            return None
        cells: Cells = []
        for name in sorted(row, key=str.encode):
            if not self._wants(name, wanted):
                continue
            low, high = wanted.times or (0, 2**63)
            versions = [pair for pair in sorted(row[name].items(), reverse=True) if low <= pair[0] < high]
            cells += [(name, value, version) for version, value in versions[: wanted.versions]]
        if wanted.test is not None and not wanted.test.passes(key, _row_of(cells)):
            return None
        if not cells and wanted.names and "k" not in wanted.names:
            return None
        return cells

    @staticmethod
    def _wants(name: str, wanted: Wanted) -> bool:
        low, high = wanted.columns
        inside = (low is None or name >= low) and (high is None or name < high)
        return inside and (not wanted.names or name in wanted.names)

    # Writing

    def write(self, change: Change) -> str:
        """Execute one row; the code of its error, or `OK`."""
        if change.action is not Action.DELETE and not all(map(self._near, change.columns)):
            return INVALID
        row = self.visible(change.key)
        if change.exists is not None and change.exists != (row is not None):
            return FAILED
        if change.test is not None and not change.test.passes(None if row is None else change.key, row or {}):
            return FAILED
        if change.action is Action.DELETE:
            self.stored.pop(change.key, None)
        elif change.action is Action.PUT:
            self.stored[change.key] = self._put(change.columns)
        else:
            after = self._updated(row or {}, change.columns)
            if after is None:
                return INVALID
            # Deletions alone do not create a row.
            if row is not None or not all(column.op in DELETIONS for column in change.columns):
                self.stored[change.key] = after
        self.log.append((change.key, change.action))
        return OK

    def write_all(self, changes: Sequence[Change]) -> list[str]:
        """Execute a batch, and return the code of each row.

        Of a key that comes several times, rows with conditions are refused, and increments if there are several.
        """
        keys = [change.key for change in changes]
        incremented = [change.key for change in changes if _increments(change)]
        return [
            INVALID
            if (keys.count(change.key) > 1 and (change.exists is not None or change.test is not None))
            or (incremented.count(change.key) > 1 and _increments(change))
            else self.write(change)
            for change in changes
        ]

    def keep(self, versions: int) -> None:
        """Change the maximum of versions; versions beyond a lower one disappear at once."""
        self.versions = versions
        for row in self.stored.values():
            for name in row:
                row[name] = self._newest(row[name])

    def _near(self, column: Column) -> bool:
        if column.timestamp_ms is None or column.op is not CellOp.PUT:
            return True
        now = self.now_ms // 1000
        low = now - self.deviation if self.ttl < 0 else max(now - self.deviation, now - self.ttl)
        return low * 1000 <= column.timestamp_ms < (now + self.deviation) * 1000

    def _put(self, columns: Iterable[Column]) -> Row:
        row: Row = {}
        for column in columns:
            row.setdefault(column.name, {})[self._version(column)] = column.value
        return {name: self._newest(versions) for name, versions in row.items()}

    def _updated(self, before: Row, columns: Iterable[Column]) -> Row | None:
        row = {name: dict(versions) for name, versions in before.items()}
        for column in columns:
            versions = row.get(column.name, {})
            match column.op:
                case CellOp.DELETE_ALL_VERSIONS:
                    versions = {}
                case CellOp.DELETE_ONE_VERSION:
                    versions.pop(column.timestamp_ms or 0, None)
                case CellOp.INCREMENT:
                    current = versions[max(versions)] if versions else 0
                    if type(current) is not int:
                        return None
                    total = (current + column.value + 2**63) % 2**64 - 2**63
                    versions[max(self.now_ms, *versions) if versions else self.now_ms] = total
                case _:
                    versions[self._version(column)] = column.value
            row[column.name] = self._newest(versions)
        return {name: versions for name, versions in row.items() if versions}

    def _version(self, column: Column) -> int:
        return self.now_ms if column.timestamp_ms is None else column.timestamp_ms

    def _newest(self, versions: dict[int, Any]) -> dict[int, Any]:
        return dict(sorted(versions.items(), reverse=True)[: self.versions])
