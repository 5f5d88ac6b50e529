"""Where the splits of a snapshot resume that are copied in part: every row before a split's cursor is stored. Pure.

Few splits are copied at the same time, so few have a cursor. Keys may be long, so their number is limited by bytes as
well: a cursor without room is left out, and its split resumes at the one before (`ots_tunnel.snapshot.copied`).

Serialised form: gzip of {"version": 1, "cursors": {"17": base64 of the PlainBuffer primary key, ...}}.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Final

from ots_tunnel.errors import CodecError
from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.key_order import key_order
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_primary_key
from ots_tunnel.snapshot.splits import SplitList

#: Most bytes of the encoded keys: a record is written again with each progress. Own choice.
MAX_BYTES: Final = 131_072
#: Version of the serialised form.
_VERSION = 1


def key_bytes(cursor: PrimaryKey) -> int:
    """Bytes of a cursor, of `MAX_BYTES`."""
    return len(encode_primary_key(cursor))


def serialise(cursors: Mapping[int, PrimaryKey]) -> bytes:
    """The cursors in the form of the progress record; equal ones give equal bytes."""
    keys = {str(index): base64.b64encode(encode_primary_key(cursors[index])).decode() for index in sorted(cursors)}
    document = {"version": _VERSION, "cursors": keys}
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def deserialise(payload: bytes, splits: SplitList) -> dict[int, PrimaryKey]:
    """The cursors from their serialised form; empty bytes are no cursors.

    Raises:
        CodecError: the bytes are damaged, their version is unknown to this release, or a cursor is not in its split.
    """
    if not payload:
        return {}
    try:
        document = json.loads(gzip.decompress(payload))
        if document["version"] != _VERSION:
            raise CodecError(f"cursors: version {document['version']} is unknown, {_VERSION} is known")
        cursors = {
            int(index): decode_primary_key(base64.b64decode(key, validate=True))
            for index, key in document["cursors"].items()
        }
        for index, cursor in cursors.items():
            split = splits.split(index)
            names = [name for name, _ in cursor]
            inside = key_order(split.start) <= key_order(cursor) < key_order(split.end)
            if names != list(splits.columns) or not inside:
                raise CodecError(f"cursors: the key of split {index} is not in the split")
    except (OSError, EOFError, zlib.error, binascii.Error, ValueError, AttributeError, LookupError, TypeError) as error:
        raise CodecError(f"cursors: damaged: {type(error).__name__}: {error}") from error
    return cursors
