"""The document of a state file. Pure."""

from __future__ import annotations

import base64
from datetime import datetime

from ots_tunnel.config import ConfigModel
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_primary_key
from ots_tunnel.verify.comparison import COUNTS, CellDifference, Difference, DifferingRow, ShownValue

#: Value of the field `format`; the number changes when older versions cannot read the document.
FORMAT = "ots-tunnel verify 2"


class TablePlace(ConfigModel):
    """Address of a table."""

    endpoint: str
    instance: str
    table: str

    def __str__(self) -> str:
        return f"{self.instance}/{self.table} at {self.endpoint}"


class VerifyTask(ConfigModel):
    """The tables and how they are compared; a state file belongs to one task."""

    source: TablePlace
    destination: TablePlace
    sample_percent: float | None = None
    """Percent of the slices that are compared; null means all."""
    seed: int = 0
    """Selects the slices of the sample."""
    recheck_seconds: float = 0
    """Pause before differing rows are read again; 0 means no recheck."""
    show: int = 10
    """Number of differences that are kept with their keys and values."""
    max_versions: int
    """Versions of each column that are read."""
    source_created: datetime | None = None
    """Creation of the source: finished slices say nothing about a later table of its name; null if it is not known."""
    destination_created: datetime | None = None
    """The same of the destination."""


class _Shown(ConfigModel):
    type: str
    text: str


class _Cell(ConfigModel):
    column: str
    version: int
    first: _Shown | None
    second: _Shown | None


class RowDocument(ConfigModel):
    """A differing row."""

    slice: int
    kind: Difference
    key: str
    cells: tuple[_Cell, ...]
    more: int


class StateDocument(ConfigModel):
    """The whole document.

    `bounds` are the n + 1 bounds of n slices; these and the keys in `first` are PlainBuffer rows in base64. `done` maps
    the number of every finished slice to its counts, in the order of `comparison.COUNTS`.
    """

    format: str
    task: VerifyTask
    started: datetime
    bounds: tuple[str, ...]
    done: dict[int, tuple[int, ...]]
    first: tuple[RowDocument, ...]


def key_text(key: PrimaryKey) -> str:
    """A key as text of the document."""
    return base64.b64encode(encode_primary_key(key)).decode()


def key_of(text: str) -> PrimaryKey:
    """A key from text of the document.

    Raises:
        CodecError, ValueError: the text is not a key.
    """
    return decode_primary_key(base64.b64decode(text, validate=True))


def row_document(number: int, row: DifferingRow) -> RowDocument:
    """A differing row of slice `number` in the document's form."""
    cells = tuple(
        _Cell(column=cell.column, version=cell.version, first=_shown(cell.first), second=_shown(cell.second))
        for cell in row.cells
    )
    return RowDocument(slice=number, kind=row.kind, key=key_text(row.primary_key), cells=cells, more=row.more)


def row_of(document: RowDocument) -> DifferingRow:
    """A differing row from the document's form.

    Raises:
        CodecError, ValueError: its key is malformed.
    """
    cells = tuple(
        CellDifference(cell.column, cell.version, _value(cell.first), _value(cell.second)) for cell in document.cells
    )
    return DifferingRow(document.kind, key_of(document.key), cells, document.more)


def _shown(value: ShownValue | None) -> _Shown | None:
    return None if value is None else _Shown(type=value.type, text=value.text)


def _value(document: _Shown | None) -> ShownValue | None:
    return None if document is None else ShownValue(document.type, document.text)


def refuse_damage(document: StateDocument, where: str) -> None:
    """Check the format and that the parts fit together.

    Raises:
        ConfigError: they do not; names `where` the document was found and the field.
    """
    if document.format != FORMAT:
        raise ConfigError(f"{where}: format: found {document.format!r}, allowed is {FORMAT!r}")
    if len(document.bounds) < 2:
        raise ConfigError(f"{where}: bounds: found {len(document.bounds)}, needed are at least 2")
    for number, counts in document.done.items():
        if len(counts) != len(COUNTS):
            raise ConfigError(f"{where}: done: slice {number} has {len(counts)} counts, needed are {len(COUNTS)}")
