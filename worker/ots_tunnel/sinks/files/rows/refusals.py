"""Records that typed files cannot take: found before anything of their page is in a file.

A file that holds a part of a page cannot be published, and its earlier pages would be lost with it. So every page is
looked through first. The compiled twin does so without a decoded value; what it suspects goes through the reference,
which also verifies the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ots_tunnel.errors import MAX_REFUSED_KEYS, SinkRejected
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.files.rows.change_columns import TWIN_BYTES
from ots_tunnel.sinks.files.rows.declared import UNKNOWN_TEXT, Declared, as_declared, misfit_text
from ots_tunnel.sinks.files.rows.typed_cells import told
from ots_tunnel.sinks.key_text import key_text

#: Codes of refusals.
WRONG_TYPE, UNKNOWN_COLUMN = "WrongType", "UnknownColumn"


class Refusal(NamedTuple):
    """A record that is refused for good, and why."""

    record: Record
    code: str
    message: str


def refusals(records: Sequence[Record], declared: Declared) -> list[Refusal]:
    """The records that do not fit, in their order, each once.

    Raises:
        CodecError: a record is malformed.
    """
    suspected = (_refusal(records[place], declared) for place in _suspects(records, declared))
    return [refusal for refusal in suspected if refusal is not None]


def rejection(refused: Sequence[Refusal]) -> SinkRejected:
    """The error that names the first refusal and the keys of at most `MAX_REFUSED_KEYS`."""
    first = refused[0]
    keys = tuple(key_text(each.record.key) for each in refused[:MAX_REFUSED_KEYS])
    return SinkRejected(first.code, first.message, keys)


def _suspects(records: Sequence[Record], declared: Declared) -> Iterator[int]:
    """Places of the records that may not fit; all of them where nothing was compiled."""
    if native is None:
        yield from range(len(records))
        return
    found, wanted, at = list(records), declared.tags, 0
    while at < len(found):
        places, at = native.suspects(found, at, wanted, declared.keeps_unknown, TWIN_BYTES)
        yield from places


def _refusal(record: Record, declared: Declared) -> Refusal | None:
    cells = record.decode_columns()
    unknown = None if declared.keeps_unknown else declared.unknown(cells)
    if unknown is not None:
        return Refusal(record, UNKNOWN_COLUMN, f"row {key_text(record.key)}: column {unknown!r}: {UNKNOWN_TEXT}")
    for name, cell in told(cells).values.items():
        kind = declared.types.get(name)
        if kind is not None and cell.value is not None and as_declared(kind, cell.value) is None:
            text = f"column {name!r}: {misfit_text(kind, cell.value)}"
            return Refusal(record, WRONG_TYPE, f"row {key_text(record.key)}: {text}")
    return None
