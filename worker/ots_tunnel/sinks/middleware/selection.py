"""A transform of many records at once: by the compiled twin, in one pass over their bytes that verifies them.

The reference is `Transform.apply`. It takes what the twin leaves to it: a record that is not well-formed, one whose key
or columns do not fit the settings, and every record where nothing was compiled.
"""

from __future__ import annotations

from typing import Any

from ots_tunnel.errors import CodecError
from ots_tunnel.model import KeyValue
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.plainbuffer.values import encode_value
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.middleware.transform import Omitted, Transform
from ots_tunnel.sinks.slices import end_of_slice

#: Bytes of records that the twin takes at a time: about half a millisecond of work.
TWIN_BYTES = 262_144
#: Tag of a bound that has no form on the wire, so no key has it: every record is left to the reference.
_NO_TAG = 0xFF
#: What becomes of a column besides a new name.
_KEPT, _LEFT_OUT, _REFUSED = True, False, None


class Selection:
    """Applies a transform to parts of a page."""

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._settings = _settings(transform)

    def __repr__(self) -> str:
        return f"Selection({self._transform!r})"

    def part(self, records: list[Record], first: int, omitted: Omitted) -> tuple[list[Record], int]:
        """The records of the next part that pass, with the columns they keep, and the place behind the part.

        Args:
            first: place at which the part begins.

        Raises:
            CodecError: a record is malformed.
            SinkRejected: a filter does not fit the table's key, or two columns would become one.
        """
        if native is None:
            end = end_of_slice(records, first)
        else:
            passed, dropped, cells, end = native.select(records, first, *self._settings, TWIN_BYTES)
            if end > first:
                omitted.records += dropped
                omitted.cells += cells
                return self._transform.with_origins(passed), end
            end = first + 1
        return self._transform.apply(records[first:end], omitted), end


def _settings(transform: Transform) -> tuple[Any, ...]:
    """The arguments of the twin that a transform stands for."""
    actions = sum(1 << action for action in transform.actions)
    prefixes = tuple((_text(name), _text(prefix)) for name, prefix in transform.key_prefixes.items())
    bounds = transform.key_bounds
    begin, end = ((), ()) if bounds is None else (_bound(bounds.begin), _bound(bounds.end))
    return (
        actions,
        prefixes,
        begin,
        end,
        _names(transform) if transform.changes_columns else None,
        transform.include is None,
    )


def _names(transform: Transform) -> dict[bytes, bytes | bool | None]:
    """What becomes of each column that the settings name."""
    named = {*(transform.include or ()), *transform.exclude, *transform.rename, *transform.taken}
    return {name: _fate(transform, name) for name in named}


def _fate(transform: Transform, name: bytes) -> bytes | bool | None:
    if not transform.keeps(name):
        return _LEFT_OUT
    if name in transform.taken:
        return _REFUSED
    return transform.rename.get(name, _KEPT)


def _bound(bound: tuple[KeyValue, ...]) -> tuple[tuple[int, KeyValue], ...]:
    """Tag and value of each column of a bound; texts as bytes."""
    return tuple(map(_tagged, bound))


def _tagged(value: KeyValue) -> tuple[int, KeyValue]:
    try:
        tag = encode_value(value)[0]
    except CodecError:
        return _NO_TAG, value
    return tag, _text(value) if isinstance(value, str) else value


def _text(text: str) -> bytes:
    # a text that no key can hold begins no key's text
    return text.encode(errors="surrogatepass")
