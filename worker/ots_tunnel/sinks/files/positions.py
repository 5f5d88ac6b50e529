"""Which published files a replay from a checkpoint replaces.

A stream's records carry their position, so the first one that comes says it. Existing rows carry none: they come in
key order, and the checkpoint says the key at which reading goes on (tunnel-protocol 2.4).
"""

from __future__ import annotations

from ots_tunnel.errors import CodecError
from ots_tunnel.model import FINISHED, Marker, PrimaryKey, Token
from ots_tunnel.protocol.plainbuffer import decode_primary_key
from ots_tunnel.protocol.token import parse_token

Order = tuple[tuple[int, int | bytes], ...]


def key_order(primary_key: PrimaryKey) -> Order:
    """What sorts keys of one table as the service does: integers by value, text by its bytes (tablestore-api 2.6)."""
    return tuple(_rank(value) for _, value in primary_key)


def start_key(token: Token) -> PrimaryKey | None:
    """The key at which a base channel goes on; None where its token does not say one.

    Raises:
        CodecError: this is no token.
    """
    if not token or token == FINISHED:
        return None
    encoded = parse_token(token).primary_key
    return decode_primary_key(encoded) if encoded is not None else None


def _rank(value: object) -> tuple[int, int | bytes]:
    match value:
        case Marker.INF_MIN:
            return (0, 0)
        case Marker.INF_MAX:
            return (2, 0)
        case int() | bytes():
            return (1, value)
        case str():
            return (1, value.encode())
        case _:
            raise CodecError(f"a key holds {value!r}")
