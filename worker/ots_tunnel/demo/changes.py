"""An endless, seeded sequence of changes of every kind for the flights table. Pure.

The same seed and keys give the same changes. All cells have explicit versions; every change is one millisecond newer
than the one before. The sequence stays in the domain of equal tables (docs/architecture.md rule 14): between two
events that empty a column, either no single version of it is deleted, or at most `max_versions` distinct versions are
written to it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ots_tunnel.demo.flights import ATTRIBUTES, MAX_VERSIONS
from ots_tunnel.model import Action, CellOp, PrimaryKey, Value
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite


class ChangeKind(StrEnum):
    """Kinds of changes that the demo counts."""

    UPDATE = "columns updated"
    DELETE_VERSION = "one version deleted"
    DELETE_COLUMN = "all versions deleted"
    PUT = "rows replaced"
    KEYS_ONLY = "rows replaced by their key alone"
    DELETE_ROW = "rows deleted"


@dataclass(frozen=True, slots=True)
class DemoChange:
    """One change and its kind."""

    kind: ChangeKind
    write: RowWrite


#: Relative frequency of each kind; a kind that is impossible for the row is replaced by a put. Own choice: updates
#: dominate, as in most tables, and every other kind still happens every few seconds.
WEIGHTS: Mapping[ChangeKind, int] = {
    ChangeKind.UPDATE: 50,
    ChangeKind.DELETE_VERSION: 12,
    ChangeKind.DELETE_COLUMN: 10,
    ChangeKind.PUT: 16,
    ChangeKind.KEYS_ONLY: 4,
    ChangeKind.DELETE_ROW: 8,
}

#: Number of hot keys, percent of the changes that hit them, and percent that hit a recently changed key. Own choice:
#: enough changes of one key to test order per key.
HOT_KEYS, HOT_PERCENT, RECENT_PERCENT = 8, 10, 25

#: Number of recently changed keys that are remembered.
RECENT_KEYS = 1_000

#: Columns that the data set does not have, so that every type of value is copied.
EXTRA_COLUMNS = ("delay_ratio", "diverted", "remark", "trace")

COLUMNS = (*ATTRIBUTES, *EXTRA_COLUMNS)

_WORDS = ("on time", "vereist", "défaut", "遅延", "ждём", "fog ☁", "")


@dataclass(slots=True)
class _History:
    """Versions written to a column since an event emptied it."""

    written: tuple[int, ...] = ()
    deleted: frozenset[int] = frozenset()

    @property
    def living(self) -> tuple[int, ...]:
        return tuple(version for version in self.written if version not in self.deleted)

    def may_write(self, max_versions: int) -> bool:
        return not self.deleted or len(self.written) < max_versions

    def may_delete_one(self, max_versions: int) -> bool:
        return len(self.written) <= max_versions and bool(self.living)


class _Row:
    """The columns of one row; `others` are the versions of every column that is not in `columns`."""

    __slots__ = ("columns", "others")

    def __init__(self, others: tuple[int, ...]) -> None:
        self.others = others
        self.columns: dict[str, _History] = {}

    def history(self, name: str) -> _History:
        return self.columns.get(name) or _History(self.others)

    def write(self, name: str, version: int) -> None:
        history = self.history(name)
        self.columns[name] = _History((*history.written, version), history.deleted)

    def delete_one(self, name: str, version: int) -> None:
        history = self.history(name)
        self.columns[name] = _History(history.written, history.deleted | {version})

    def empty(self, name: str) -> None:
        self.columns[name] = _History()

    def empty_all(self) -> None:
        self.others = ()
        self.columns.clear()


def changes(
    seed: int, keys: Sequence[PrimaryKey], *, base_version_ms: int, max_versions: int = MAX_VERSIONS
) -> Iterator[DemoChange]:
    """Changes without end.

    Args:
        seed: selects the sequence.
        keys: keys of the loaded rows, at least one; every cell was loaded with one version.
        base_version_ms: version of the loaded cells; all new versions are later.
        max_versions: versions the table keeps per column.
    """
    return _Changes(seed, keys, base_version_ms, max_versions).run()


class _Changes:
    """State of the generator: the histories of the rows it has changed."""

    def __init__(self, seed: int, keys: Sequence[PrimaryKey], base_version_ms: int, max_versions: int) -> None:
        self._random = random.Random(seed)
        self._keys = keys
        self._base = base_version_ms
        self._version = base_version_ms
        self._max_versions = max_versions
        self._rows: dict[PrimaryKey, _Row] = {}
        self._hot = self._random.sample(keys, min(HOT_KEYS, len(keys)))
        self._recent: deque[PrimaryKey] = deque(maxlen=RECENT_KEYS)
        self._kinds = tuple(WEIGHTS)
        self._weights = tuple(WEIGHTS.values())

    def run(self) -> Iterator[DemoChange]:
        while True:
            key = self._key()
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = _Row((self._base,))
            self._version += 1
            wanted = self._random.choices(self._kinds, self._weights)[0]
            # A kind may be impossible for this row; a put is always possible.
            yield self._change(wanted, key, row) or self._put(key, row)

    def _key(self) -> PrimaryKey:
        dice = self._random.randrange(100)
        if dice < HOT_PERCENT:
            return self._random.choice(self._hot)
        if dice < HOT_PERCENT + RECENT_PERCENT and self._recent:
            return self._random.choice(self._recent)
        key = self._random.choice(self._keys)
        self._recent.append(key)
        return key

    def _change(self, kind: ChangeKind, key: PrimaryKey, row: _Row) -> DemoChange | None:
        match kind:
            case ChangeKind.UPDATE:
                return self._update(key, row)
            case ChangeKind.DELETE_VERSION:
                return self._delete_version(key, row)
            case ChangeKind.DELETE_COLUMN:
                return self._delete_column(key, row)
            case ChangeKind.PUT:
                return self._put(key, row)
            case ChangeKind.KEYS_ONLY:
                row.empty_all()
                return DemoChange(kind, RowWrite(Action.PUT, key))
            case ChangeKind.DELETE_ROW:
                row.empty_all()
                return DemoChange(kind, RowWrite(Action.DELETE, key))

    def _update(self, key: PrimaryKey, row: _Row) -> DemoChange | None:
        names = self._pick(lambda name: row.history(name).may_write(self._max_versions), most=3)
        if not names:
            return None
        columns = tuple(self._write(row, name) for name in names)
        return DemoChange(ChangeKind.UPDATE, RowWrite(Action.UPDATE, key, columns))

    def _delete_version(self, key: PrimaryKey, row: _Row) -> DemoChange | None:
        # One column per change: the buffer of the SDK's encoder is too small for three (docs/data-plane.md 3.4).
        names = self._pick(lambda name: row.history(name).may_delete_one(self._max_versions), most=1)
        if not names:
            return None
        version = self._random.choice(row.history(names[0]).living)
        row.delete_one(names[0], version)
        column = Column(names[0], None, version, CellOp.DELETE_ONE_VERSION)
        return DemoChange(ChangeKind.DELETE_VERSION, RowWrite(Action.UPDATE, key, (column,)))

    def _delete_column(self, key: PrimaryKey, row: _Row) -> DemoChange | None:
        names = self._pick(lambda name: bool(row.history(name).living), most=2)
        if not names:
            return None
        for name in names:
            row.empty(name)
        columns = tuple(Column(name, None, None, CellOp.DELETE_ALL_VERSIONS) for name in names)
        return DemoChange(ChangeKind.DELETE_COLUMN, RowWrite(Action.UPDATE, key, columns))

    def _put(self, key: PrimaryKey, row: _Row) -> DemoChange:
        row.empty_all()
        names = self._random.sample(COLUMNS, self._random.randint(3, 10))
        columns = tuple(self._write(row, name) for name in names)
        return DemoChange(ChangeKind.PUT, RowWrite(Action.PUT, key, columns))

    def _pick(self, possible: Callable[[str], bool], most: int) -> list[str]:
        """One to `most` of six random columns for which the change is possible; empty if there are none."""
        names = [name for name in self._random.sample(COLUMNS, 6) if possible(name)]
        return names[: self._random.randint(1, most)]

    def _write(self, row: _Row, name: str) -> Column:
        row.write(name, self._version)
        return Column(name, self._value(name), self._version)

    def _value(self, name: str) -> Value:
        match name:
            case "delay_ratio":
                return self._random.random() * 4 - 1
            case "diverted":
                return self._random.random() < 0.5
            case "remark":
                return self._random.choice(_WORDS)
            case "trace":
                return self._random.randbytes(self._random.randrange(1, 24))
            case _:
                number = self._random.randrange(-60, 2400)
                return number if ATTRIBUTES[name] is int else f"N{number + 60:05}"
