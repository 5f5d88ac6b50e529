"""What a comparison has done so far, and the document that keeps it; pure.

The slices are part of it: the service cuts a growing table elsewhere tomorrow, and a finished slice has to stay one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from datetime import datetime

from pydantic import ValidationError

from ots_tunnel.config import ConfigModel, describe
from ots_tunnel.errors import CodecError, ConfigError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer import decode_primary_key, encode_primary_key
from ots_tunnel.table_calls import KeyRange
from ots_tunnel.verify.comparison import COUNTS, CellDifference, Comparison, Difference, DifferingRow, ShownValue
from ots_tunnel.verify.sampling import choose_slices


class TablePlace(ConfigModel):
    """Where a table is."""

    endpoint: str
    instance: str
    table: str

    def __str__(self) -> str:
        return f"{self.instance}/{self.table} at {self.endpoint}"


class VerifyTask(ConfigModel):
    """What is compared and how; a state file only goes on with the same."""

    source: TablePlace
    destination: TablePlace
    sample_percent: float | None = None
    """Share of the slices that is compared; null is all."""
    seed: int = 0
    """Says which slices a sample takes."""
    recheck_seconds: float = 0
    """Pause before rows that differ are read again; 0 takes the first look."""
    show: int = 10
    """Differences that are kept with their keys and values."""
    max_versions: int
    """Versions of each column that are read."""


class _Shown(ConfigModel):
    type: str
    text: str


class _Cell(ConfigModel):
    column: str
    version: int
    first: _Shown | None
    second: _Shown | None


class _Row(ConfigModel):
    slice: int
    kind: Difference
    key: str
    cells: tuple[_Cell, ...]
    more: int


class StateDocument(ConfigModel):
    """The file's contents.

    `bounds` are the ends of all slices, n + 1 of them, and the keys of `first`: PlainBuffer rows in base64. `done` has
    the counts of every finished slice in the order of `comparison.COUNTS`.
    """

    format: str
    task: VerifyTask
    started: datetime
    bounds: tuple[str, ...]
    done: dict[int, tuple[int, ...]]
    first: tuple[_Row, ...]


#: What the first line of a state file has to say.
FORMAT = "ots-tunnel verify 1"


class VerifyState:
    """Which slices there are, which of them are compared, and what came of those that are done.

    Args:
        task: what is compared.
        started: when the first run began, with a time zone.
        bounds: ends of the slices in key order.
    """

    def __init__(self, task: VerifyTask, started: datetime, bounds: tuple[PrimaryKey, ...]) -> None:
        self.task = task
        self.started = started
        self.total_slices = len(bounds) - 1
        self.chosen = (
            tuple(range(self.total_slices))
            if task.sample_percent is None
            else choose_slices(self.total_slices, task.sample_percent, task.seed)
        )
        self.done: dict[int, tuple[int, ...]] = {}
        self._bounds = bounds
        self._bound_texts = tuple(_text(bound) for bound in bounds)
        self._first: list[tuple[int, DifferingRow]] = []

    def slice(self, number: int) -> KeyRange:
        """A slice by its number."""
        return KeyRange(self._bounds[number], self._bounds[number + 1])

    @property
    def waiting(self) -> tuple[int, ...]:
        """Slices that are not compared yet, in key order."""
        return tuple(number for number in self.chosen if number not in self.done)

    def finish(self, number: int, result: Comparison) -> None:
        """Take over what a slice gave; slices may end in any order, the first differences are those in key order."""
        self.done[number] = tuple(getattr(result, name) for name in COUNTS)
        self._keep((number, row) for row in result.first)

    def total(self) -> Comparison:
        """What all finished slices gave."""
        sums = dict(zip(COUNTS, (sum(column) for column in zip(*self.done.values(), strict=True)), strict=False))
        return Comparison(**sums, first=[row for _, row in self._first], keep=self.task.show)

    def document(self) -> str:
        """The state as text."""
        document = StateDocument(
            format=FORMAT,
            task=self.task,
            started=self.started,
            bounds=self._bound_texts,
            done=self.done,
            first=tuple(_row_document(number, row) for number, row in self._first),
        )
        return document.model_dump_json(by_alias=True)

    def _keep(self, rows: Iterable[tuple[int, DifferingRow]]) -> None:
        # Stable: rows of one slice stay in their order.
        self._first = sorted([*self._first, *rows], key=lambda item: item[0])[: self.task.show]

    @classmethod
    def read(cls, text: str, where: str) -> VerifyState:
        """The state in a document.

        Raises:
            ConfigError: it is none; names `where` it was found, the field and what is wrong.
        """
        try:
            document = StateDocument.model_validate_json(text)
            _refuse_damage(document, where)
            state = cls(document.task, document.started, tuple(_key(bound) for bound in document.bounds))
            chosen = set(state.chosen)
            state.done = {number: counts for number, counts in document.done.items() if number in chosen}
            state._keep((row.slice, _row(row)) for row in document.first)
        except ValidationError as error:
            raise ConfigError(f"{where}: no state of a comparison: {describe(error)}") from error
        except (CodecError, ValueError) as error:
            raise ConfigError(f"{where}: no state of a comparison: {error}") from error
        return state


def _refuse_damage(document: StateDocument, where: str) -> None:
    if document.format != FORMAT:
        raise ConfigError(f"{where}: format: found {document.format!r}, allowed is {FORMAT!r}")
    if len(document.bounds) < 2:
        raise ConfigError(f"{where}: bounds: found {len(document.bounds)}, needed are at least 2")
    for number, counts in document.done.items():
        if len(counts) != len(COUNTS):
            raise ConfigError(f"{where}: done: slice {number} has {len(counts)} counts, needed are {len(COUNTS)}")


def refuse_other_task(found: VerifyTask, wanted: VerifyTask, where: str) -> None:
    """A state only goes on with the comparison that it is of.

    Raises:
        ConfigError: names every field that differs, with what the file says and what is asked for.
    """
    clauses = [
        f"{_alias(name)}: found {getattr(found, name)}, asked for is {getattr(wanted, name)}"
        for name in VerifyTask.model_fields
        if getattr(found, name) != getattr(wanted, name)
    ]
    if clauses:
        raise ConfigError(
            f"{where}: the state of another comparison: {'; '.join(clauses)}; allowed are the same options, "
            "another --state, or --restart, which begins anew"
        )


def default_name(source: TablePlace, destination: TablePlace) -> str:
    """Name of the state file where none is given: the source's table and a digest of both places."""
    both = json.dumps([source.model_dump(), destination.model_dump()]).encode()
    return f"verify-{source.table}-{hashlib.sha256(both).hexdigest()[:8]}.json"


def _alias(name: str) -> str:
    return VerifyTask.model_fields[name].alias or name


def _text(key: PrimaryKey) -> str:
    return base64.b64encode(encode_primary_key(key)).decode()


def _key(text: str) -> PrimaryKey:
    return decode_primary_key(base64.b64decode(text, validate=True))


def _row_document(number: int, row: DifferingRow) -> _Row:
    cells = tuple(
        _Cell(column=cell.column, version=cell.version, first=_shown(cell.first), second=_shown(cell.second))
        for cell in row.cells
    )
    return _Row(slice=number, kind=row.kind, key=_text(row.primary_key), cells=cells, more=row.more)


def _row(document: _Row) -> DifferingRow:
    cells = tuple(
        CellDifference(cell.column, cell.version, _value(cell.first), _value(cell.second)) for cell in document.cells
    )
    return DifferingRow(document.kind, _key(document.key), cells, document.more)


def _shown(value: ShownValue | None) -> _Shown | None:
    return None if value is None else _Shown(type=value.type, text=value.text)


def _value(document: _Shown | None) -> ShownValue | None:
    return None if document is None else ShownValue(document.type, document.text)
