"""The JSON form of records as bytes, by the compiled twin where there is one.

The twin writes a record in one pass over its bytes, with no object per cell, and verifies every checksum on the way. It
leaves to the reference, `json_record`, what is not well-formed and what is rare: a key with a marker, or with two
columns of one name. Both give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ots_tunnel.model import Action, ChannelId
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_record import json_form, json_text
from ots_tunnel.sinks.slices import end_of_slice

#: Bytes that are written at a time. A whole page at once would be in memory several more times.
PORTION_BYTES = 262_144


def json_bytes(record: Record, channel_id: ChannelId) -> bytes:
    """The JSON form of one record on one line, without the end of the line.

    Raises:
        CodecError: the record is malformed.
    """
    if native is not None:
        text: bytes | None = native.json_record(record, heads_of(channel_id))
        if text is not None:
            return text
    return json_text(json_form(record, channel_id)).encode()


def json_lines(records: Sequence[Record], channel_id: ChannelId) -> Iterator[bytes]:
    """Lines of the JSON form of records, joined to portions of about `PORTION_BYTES`.

    Raises:
        CodecError: a record is malformed; lines of those before it may have been given.
    """
    if native is None:
        yield from joined(json_bytes(record, channel_id) + b"\n" for record in records)
        return
    found, at = list(records), 0
    while at < len(found):
        lines, at = next_lines(found, at, channel_id)
        yield lines


def next_lines(records: list[Record], first: int, channel_id: ChannelId) -> tuple[bytes, int]:
    """The lines that one round of the event loop may make of records from a place on, and the place behind them.

    The twin makes about `PORTION_BYTES` of them, the reference those of a slice (`slices`).

    Raises:
        CodecError: a record is malformed.
    """
    end = first + 1
    if native is None:
        end = end_of_slice(records, first)
    else:
        lines, at = native.json_lines(records, first, heads_of(channel_id), PORTION_BYTES)
        if at > first:
            return lines, at
    return b"".join([json_bytes(record, channel_id) + b"\n" for record in records[first:end]]), end


def joined(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join lines to portions of about `PORTION_BYTES`; each is released before the next one is made."""
    portion: list[bytes] = []
    size = 0
    for line in lines:
        size += len(line)
        portion.append(line)
        if size >= PORTION_BYTES:
            yield b"".join(portion)
            portion, size = [], 0
    if portion:
        yield b"".join(portion)


@lru_cache(maxsize=1024)
def heads_of(channel_id: ChannelId) -> Mapping[Action, bytes]:
    """What a record of each action begins with, up to its sequence."""
    channel = json_text(channel_id)
    return {
        action: f'{{"action":{json_text(action.name)},"channel":{channel},"sequence":'.encode() for action in Action
    }
