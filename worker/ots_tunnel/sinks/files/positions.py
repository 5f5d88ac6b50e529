"""Where a base channel goes on: which of its published files a replay replaces.

A stream's records carry their position, so the first one that comes says it. Existing rows carry none: they come in
key order, and the checkpoint says the key at which reading goes on (docs/protocol.md 2.4).
"""

from __future__ import annotations

from ots_tunnel.model import FINISHED, PrimaryKey, Token
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key
from ots_tunnel.protocol.token import parse_token


def start_key(token: Token) -> PrimaryKey | None:
    """The key at which a base channel goes on; None where its token does not say one.

    Raises:
        CodecError: this is no token.
    """
    if not token or token == FINISHED:
        return None
    encoded = parse_token(token).primary_key
    return decode_primary_key(encoded) if encoded is not None else None
