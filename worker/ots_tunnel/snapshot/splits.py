"""The frozen split list: half-open key ranges that cover a table, cut at the service's split points. Pure.

Theory of operation
-------------------

A snapshot is complete when every split is recorded as done (docs/architecture.md 3.3). This is a proof only if the
splits cover the table without gaps and do not change, so the list is checked, frozen once, and stored before the first
row is read.

Splits are contiguous. The list therefore holds only the inner boundaries: n - 1 keys make n splits, from INF_MIN to
INF_MAX. A boundary is a PlainBuffer primary key, which is lossless for every key type.

    split_list    checks the service's ranges and takes their inner boundaries
    freeze        merges neighbours until the list fits into the record, and serialises it
    serialise     gzip of {"version": 1, "columns": [...], "boundaries": [base64, ...]}; equal lists give equal bytes

Two limits, in this order: at most `MAX_SPLITS` (4,000) splits, because each is a task of one Spark job, and the whole
list is written with every progress; more of them, up to `MAX_LARGE_SPLITS` (20,000), where splits would be larger than
`LARGE_SPLIT_BYTES` (256 MiB), because a task has ten minutes for its split; at most `MAX_BYTES` (900,000) bytes of
compressed list, because a ConfigMap holds 1 MiB of decoded data, and the bitmap and the other items need room as well.

Example: a table with the key column `id` and the split points 100 and 200 has the boundaries (id=100), (id=200) and
the splits [INF_MIN, 100), [100, 200), [200, INF_MAX). Merged to 2 splits it has the boundary (id=100).
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

#: Most splits of a table, see above.
MAX_SPLITS = 4_000
#: Most splits of a table of more than 1 TiB, and bytes of a split, by the service's estimate, that make them more.
MAX_LARGE_SPLITS, LARGE_SPLIT_BYTES = 20_000, 268_435_456
#: Most bytes of the compressed list, see above.
MAX_BYTES = 900_000
#: Version of the serialised form.
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Split:
    """One key range from `start` (inclusive) to `end` (exclusive); both name every key column."""

    index: int
    start: PrimaryKey
    end: PrimaryKey


@dataclass(frozen=True, slots=True)
class SplitList:
    """Splits of one table: names of the key columns, and the encoded inner boundaries in key order."""

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
    """Build the list from the service's ranges, which are in key order; there is at least one.

    Raises:
        CodecError: the ranges overlap or do not cover the table; rows in a gap would be lost.
    """
    names = tuple(name for name, _ in ranges[0].start)
    whole = _bound(names, Marker.INF_MIN), _bound(names, Marker.INF_MAX)
    if (ranges[0].start, ranges[-1].end) != whole or any(a.end != b.start for a, b in pairwise(ranges)):
        raise CodecError(f"the {len(ranges)} splits of the service do not cover the table without gaps")
    return SplitList(names, tuple(encode_primary_key(part.start) for part in ranges[1:]))


def most_splits(units: int, unit_bytes: int) -> int:
    """Most splits of a table that the service cuts into `units` ranges of about `unit_bytes`; at least `MAX_SPLITS`."""
    return max(MAX_SPLITS, min(MAX_LARGE_SPLITS, units * unit_bytes // LARGE_SPLIT_BYTES))


def merge(splits: SplitList, parts: int) -> SplitList:
    """Merge neighbours into at most `parts` splits of similar size; `parts` is at least 1."""
    count = len(splits)
    if count <= parts:
        return splits
    starts = (part * count // parts for part in range(1, parts))
    return SplitList(splits.columns, tuple(splits.boundaries[start - 1] for start in starts))


def freeze(splits: SplitList, *, max_splits: int = MAX_SPLITS, max_bytes: int = MAX_BYTES) -> tuple[SplitList, bytes]:
    """Merge neighbours until the list fits both limits; return it with its serialised form.

    A single split always fits, because it has no boundary.
    """
    frozen = merge(splits, max_splits)
    payload = serialise(frozen)
    while len(payload) > max_bytes and len(frozen) > 1:
        # Nine tenths of the proportional share, so that one or two rounds suffice.
        frozen = merge(frozen, max(1, len(frozen) * max_bytes * 9 // (len(payload) * 10)))
        payload = serialise(frozen)
    return frozen, payload


def serialise(splits: SplitList) -> bytes:
    """The list in the form of the progress record."""
    document = {
        "version": _VERSION,
        "columns": splits.columns,
        "boundaries": [base64.b64encode(boundary).decode() for boundary in splits.boundaries],
    }
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def deserialise(payload: bytes) -> SplitList:
    """The list from its serialised form.

    Raises:
        CodecError: the bytes are damaged, or their version is unknown to this release.
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
