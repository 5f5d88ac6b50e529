"""A primary key as text for errors and log lines."""

from __future__ import annotations

from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_key_cells

#: Longest text of one value and of a whole key, characters: a line of a log has room for both.
VALUE_CHARACTERS, KEY_CHARACTERS = 32, 120


def key_text(key: bytes) -> str:
    """A primary key as `name=value, ...`, long values shortened.

    Args:
        key: wire bytes of the key cells.
    """
    return primary_key_text(decode_key_cells(key))


def primary_key_text(key: PrimaryKey) -> str:
    """The same of a decoded key."""
    parts = []
    for name, value in key:
        text = repr(value)
        parts.append(f"{name}={text if len(text) <= VALUE_CHARACTERS else text[:VALUE_CHARACTERS] + '...'}")
    return ", ".join(parts)[:KEY_CHARACTERS]
