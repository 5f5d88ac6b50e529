"""Offsets as the JSON that Spark keeps in its log, version 1. Pure.

    {"channels": {"c": {"last": [0, 1700000000123456, 7], "to": "<token>",
                        "after": [0, 1700000000000000, 0], "from": "<token>", "rows": 120}},
     "ended": ["b"], "query": "5f0c...", "readBefore": {"d": 7}, "tunnel": "6e11d632-...", "version": 1}

`last` and `after` are marks: three numbers for a sequence, text in base64 for a key; missing where there is none.
`until`, Unix seconds, is there for a channel that was idle when the batch was made; `gap`, from and to, for one of
which changes may be missing.
`from`, `rows` and `after` are there only if the batch has records of the channel. `ended` is missing in offsets of
former releases, `readBefore` where it has no channel.

Spark compares offsets as text, and another order of the names would be new data. So names are sorted, and equal offsets
have equal text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import ChannelId, SequenceInfo, Token, TunnelId
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.spark.stream.marks import Mark
from ots_tunnel.spark.stream.offsets import ChannelOffset, Offset, Position, Span

VERSION: Final = 1


def offset_to_json(offset: Offset) -> dict[str, Any]:
    """The offset as JSON values, names in order."""
    found: dict[str, Any] = {
        "channels": {name: _channel_to_json(offset.channels[name]) for name in sorted(offset.channels)},
        "query": offset.query_id,
        "tunnel": offset.tunnel_id,
        "version": VERSION,
    }
    if offset.ended is not None:
        found["ended"] = sorted(offset.ended)
    if offset.read_before:
        found["readBefore"] = {name: offset.read_before[name] for name in sorted(offset.read_before)}
    return dict(sorted(found.items()))


def offset_from_json(document: Any) -> Offset:
    """The offset of JSON values.

    Raises:
        ConfigError: of another version, or malformed; names the field.
    """
    fields = _fields(document, "the offset")
    version = fields.get("version")
    if type(version) is not int or version != VERSION:
        raise ConfigError(
            f"checkpointLocation: found offsets of version {version!r}, this release reads version {VERSION}; "
            "use the release that wrote them, or a new folder"
        )
    channels = _fields(fields.get("channels"), "channels")
    return Offset(
        TunnelId(_text(fields, "tunnel")),
        _text(fields, "query"),
        {ChannelId(name): _channel_from_json(found, f"channels.{name}") for name, found in sorted(channels.items())},
        _ended(fields),
        _read_before(fields),
    )


def _channel_to_json(channel: ChannelOffset) -> dict[str, Any]:
    position, span = channel.position, channel.span
    found: dict[str, Any] = {"to": position.token}
    if position.last is not None:
        found["last"] = _mark_to_json(position.last)
    if position.until is not None:
        found["until"] = position.until
    if position.gap is not None:
        found["gap"] = [position.gap.start, position.gap.end]
    if span is not None:
        found |= {"from": span.token, "rows": span.rows}
        if span.after is not None:
            found["after"] = _mark_to_json(span.after)
    return dict(sorted(found.items()))


def _channel_from_json(document: Any, place: str) -> ChannelOffset:
    fields = _fields(document, place)
    until = fields.get("until")
    if until is not None and (type(until) is not int or until < 0):
        raise _malformed(f"{place}.until", until, "a number of seconds")
    position = Position(Token(_text(fields, "to", place)), _mark(fields, "last", place), until, _gap(fields, place))
    if "from" not in fields:
        return ChannelOffset(position)
    rows = fields.get("rows")
    if type(rows) is not int or rows < 1:
        raise _malformed(f"{place}.rows", rows, "a number of 1 and more")
    return ChannelOffset(position, Span(Token(_text(fields, "from", place)), _mark(fields, "after", place), rows))


def _mark_to_json(mark: Mark) -> list[int] | str:
    if isinstance(mark, SequenceInfo):
        return [mark.epoch, mark.timestamp_us, mark.row_index]
    return base64.b64encode(mark).decode()


def _mark(fields: Mapping[str, Any], name: str, place: str) -> Mark | None:
    match fields.get(name):
        case None:
            return None
        case [int() as epoch, int() as timestamp_us, int() as row_index]:
            return SequenceInfo(epoch, timestamp_us, row_index)
        case str() as text:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                pass  # refused below, as any other value
    raise _malformed(f"{place}.{name}", fields[name], "three numbers, or text in base64")


def _gap(fields: Mapping[str, Any], place: str) -> Gap | None:
    match fields.get("gap"):
        case None:
            return None
        case [int() as start, int() as end]:
            return Gap(start, end)
    raise _malformed(f"{place}.gap", fields["gap"], "two numbers of seconds")


def _ended(fields: Mapping[str, Any]) -> frozenset[ChannelId] | None:
    found = fields.get("ended")
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise _malformed("ended", found, "a list of texts")
    return frozenset(map(ChannelId, found))


def _read_before(fields: Mapping[str, Any]) -> dict[ChannelId, int]:
    found = _fields(fields.get("readBefore", {}), "readBefore")
    for name, number in found.items():
        if type(number) is not int:
            raise _malformed(f"readBefore.{name}", number, "a number")
    return {ChannelId(name): number for name, number in sorted(found.items())}


def _fields(document: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise _malformed(place, document, "an object")
    return document


def _text(fields: Mapping[str, Any], name: str, place: str = "") -> str:
    found = fields.get(name)
    if not isinstance(found, str) or not found:
        raise _malformed(f"{place}.{name}" if place else name, found, "text")
    return found


def _malformed(place: str, found: Any, allowed: str) -> ConfigError:
    # the kind alone: a token may hold a key
    return ConfigError(f"checkpointLocation: {place}: found {type(found).__name__}, allowed is {allowed}")
