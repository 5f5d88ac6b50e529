"""The frozen split list: half-open key ranges that cover a table, cut where the service says. Pure.

Splits are contiguous, so the list is its inner boundaries: n - 1 keys make n splits, from INF_MIN to INF_MAX.
Boundaries are kept as PlainBuffer primary keys (plainbuffer.encode_primary_key), which are lossless for every type.

Serialised, it is gzip of {"version": 1, "columns": [...], "boundaries": [base64, ...]}; equal lists give equal bytes.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ots_tunnel.client.table_calls import KeyRange
from ots_tunnel.errors import CodecError
from ots_tunnel.model import Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, encode_primary_key

#: At most so many splits are frozen (design: snapshot before stream, point 2).
MAX_SPLITS = 4_000
#: At most so many bytes of compressed list; a ConfigMap holds 1 MiB in all.
MAX_BYTES = 900_000
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Split:
    """One key range, `start` inclusive, `end` exclusive; both name every key column."""

    index: int
    start: PrimaryKey
    end: PrimaryKey


@dataclass(frozen=True, slots=True)
class SplitList:
    """Splits of one table: the key columns' names and the inner boundaries in key order, encoded."""

    columns: tuple[str, ...]
    boundaries: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.boundaries) + 1

    def split(self, index: int) -> Split:
        """The split at `index`, 0 to len - 1."""
        if not 0 <= index < len(self):
            raise IndexError(f"split {index} of {len(self)}")
        start = _bound(self.columns, Marker.INF_MIN) if index == 0 else decode_primary_key(self.boundaries[index - 1])
        last = index == len(self) - 1
        end = _bound(self.columns, Marker.INF_MAX) if last else decode_primary_key(self.boundaries[index])
        return Split(index, start, end)

    def splits(self) -> list[Split]:
        """Every split in key order."""
        return [self.split(index) for index in range(len(self))]


def split_list(ranges: Sequence[KeyRange]) -> SplitList:
    """Build the list from the service's answer: contiguous ranges in key order, at least one.

    Raises:
        CodecError: the ranges leave gaps, overlap, or do not cover the table; a gap would be rows that are lost.
    """
    names = tuple(name for name, _ in ranges[0].start)
    whole = _bound(names, Marker.INF_MIN), _bound(names, Marker.INF_MAX)
    if (ranges[0].start, ranges[-1].end) != whole or any(a.end != b.start for a, b in pairwise(ranges)):
        raise CodecError(f"the {len(ranges)} splits of the service do not cover the table without gaps")
    return SplitList(names, tuple(encode_primary_key(part.start) for part in ranges[1:]))


def merge(splits: SplitList, parts: int) -> SplitList:
    """Join neighbours so that at most `parts` splits of about equal size are left; `parts` is at least 1."""
    count = len(splits)
    if count <= parts:
        return splits
    starts = (part * count // parts for part in range(1, parts))
    return SplitList(splits.columns, tuple(splits.boundaries[start - 1] for start in starts))


def freeze(splits: SplitList, *, max_splits: int = MAX_SPLITS, max_bytes: int = MAX_BYTES) -> tuple[SplitList, bytes]:
    """Merge until the list fits; returns it with its serialised form.

    One split always fits: it needs no boundary.
    """
    frozen = merge(splits, max_splits)
    payload = serialise(frozen)
    while len(payload) > max_bytes and len(frozen) > 1:
        # A little below the proportional share, so that one or two rounds are enough.
        frozen = merge(frozen, max(1, len(frozen) * max_bytes * 9 // (len(payload) * 10)))
        payload = serialise(frozen)
    return frozen, payload


def serialise(splits: SplitList) -> bytes:
    """The list as kept in the progress record."""
    document = {
        "version": _VERSION,
        "columns": splits.columns,
        "boundaries": [base64.b64encode(boundary).decode() for boundary in splits.boundaries],
    }
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def deserialise(payload: bytes) -> SplitList:
    """The reverse of `serialise`.

    Raises:
        CodecError: damaged, or of a version this release does not know.
    """
    try:
        document = json.loads(gzip.decompress(payload))
        if document["version"] != _VERSION:
            raise CodecError(f"split list: version {document['version']} is unknown, {_VERSION} is known")
        boundaries = tuple(base64.b64decode(text, validate=True) for text in document["boundaries"])
        return SplitList(tuple(document["columns"]), boundaries)
    except (OSError, EOFError, zlib.error, binascii.Error, ValueError, KeyError, TypeError) as error:
        raise CodecError(f"split list: damaged: {type(error).__name__}: {error}") from error


def _bound(columns: Sequence[str], marker: Marker) -> PrimaryKey:
    return tuple((name, marker) for name in columns)
