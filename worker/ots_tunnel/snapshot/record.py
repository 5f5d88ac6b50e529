"""The record of a snapshot's progress: one ConfigMap that the driver writes and the operator reads. Pure.

The ConfigMap is `<name>-snapshot` (docs/architecture.md 3.3):

    metadata.labels[PROGRESS_LABEL]   the wanted copy: the tunnel's id, or the object's uid without a tunnel
    data["label"]                     the copy that the items below belong to; with another label they are ignored
    data["splits"]                    name of the immutable ConfigMap with the frozen split list, under the key
                                      "splits.json.gz" (`ots_tunnel.snapshot.splits`); a record of an earlier release
                                      has the list itself, in binaryData under the same key
    binaryData["done.bitmap"]         finished splits: split i is bit i % 8 of byte i // 8
    binaryData["cursors.json.gz"]     where splits resume that are copied in part (`ots_tunnel.snapshot.cursors`)
    data["total"]                     number of splits
    data["done"]                      number of finished splits, for display; the bitmap decides
    data["omittedCells"]              cells of finished splits that are past the destination's time to live; missing
                                      where a release that did not count them has finished a split
    data["writeDeadlineSeconds"]      the longest D of the drivers that wrote this; a driver keeps its own until it ends
    data["error"]                     why the driver has given up, in one line: no other attempt can do better; missing
                                      otherwise
    data["writer"]                    random name of the driver that wrote this
    data["updated"]                   time of this write by the driver's clock, ISO 8601
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ots_tunnel.errors import CodecError

#: Label of the progress ConfigMap: the copy that is wanted.
PROGRESS_LABEL = "ots-tunnel.dev/tunnel-id"

#: Keys of `binaryData`.
SPLITS_KEY, DONE_KEY, CURSORS_KEY = "splits.json.gz", "done.bitmap", "cursors.json.gz"

#: Keys of `data`.
OMITTED_KEY, WRITE_DEADLINE_KEY = "omittedCells", "writeDeadlineSeconds"
LIST_KEY, ERROR_KEY = "splits", "error"

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")

#: Seconds after the deletion of its pod within which a driver may still start tasks. A driver that the record does not
#: confirm ends its job before that; whoever waits for the last write of a copy waits so much longer for its tasks.
CUT_OFF_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class SnapshotProgress:
    """Progress of a snapshot.

    `total` is None until the split list is frozen: unknown, not 0. `updated` is the time of the driver's last write,
    Unix seconds; it is None while `total` is. `omitted` counts cells of finished splits, and `write_deadline` is the
    longest D of their tasks, seconds; None where a release that did not record them wrote. `error` is why the driver
    has given up, empty where it has not.
    """

    label: str
    done: int
    total: int | None
    updated: float | None = None
    omitted: int | None = None
    write_deadline: float | None = None
    error: str = ""

    @property
    def complete(self) -> bool:
        """Whether every frozen split is recorded as done; nothing else proves that a snapshot is complete."""
        return self.total is not None and self.done >= self.total


def read_progress(config_map: Mapping[str, Any]) -> SnapshotProgress:
    """Progress from the stored record.

    Raises:
        CodecError: the record is damaged; names the key.
    """
    label = (config_map["metadata"].get("labels") or {}).get(PROGRESS_LABEL, "")
    data = config_map.get("data") or {}
    if data.get("label") != label or not has_list(config_map):
        return SnapshotProgress(label, 0, None)
    total = data.get("total", "")
    if not total.isdecimal() or int(total) < 1:
        raise CodecError(f"data.total: a number of splits was expected, found {total!r}")
    try:
        updated = datetime.fromisoformat(data.get("updated", "")).timestamp()
    except ValueError as error:
        raise CodecError(f"data.updated: a time was expected: {error}") from error
    done = len(done_splits(binary_item(config_map, DONE_KEY), int(total)))
    omitted, deadline = omitted_cells(config_map), longest_deadline(config_map)
    return SnapshotProgress(label, done, int(total), updated, omitted, deadline, data.get(ERROR_KEY, ""))


def has_list(config_map: Mapping[str, Any]) -> bool:
    """Whether the record's splits are frozen."""
    return LIST_KEY in (config_map.get("data") or {}) or SPLITS_KEY in (config_map.get("binaryData") or {})


def omitted_cells(config_map: Mapping[str, Any]) -> int | None:
    """Cells that finished splits left out; None in a record of a release that did not count them.

    Raises:
        CodecError: the item is no number.
    """
    found = (config_map.get("data") or {}).get(OMITTED_KEY)
    if found is None:
        return None
    if not found.isdecimal():
        raise CodecError(f"data.{OMITTED_KEY}: a number of cells was expected, found {found!r}")
    return int(found)


def longest_deadline(config_map: Mapping[str, Any]) -> float | None:
    """The longest D of the record's drivers, seconds; None in a record of a release that did not write it.

    Raises:
        CodecError: the item is no number of seconds.
    """
    found = (config_map.get("data") or {}).get(WRITE_DEADLINE_KEY)
    if found is None:
        return None
    if _SECONDS.fullmatch(found) is None:
        raise CodecError(f"data.{WRITE_DEADLINE_KEY}: a number of seconds was expected, found {found!r}")
    return float(found)


def binary_item(config_map: Mapping[str, Any], key: str) -> bytes:
    """One item of binaryData; empty if it is missing.

    Raises:
        CodecError: the item is not Base64.
    """
    try:
        return base64.b64decode((config_map.get("binaryData") or {}).get(key, ""), validate=True)
    except binascii.Error as error:
        raise CodecError(f"binaryData.{key}: not base64: {error}") from error


def done_splits(bitmap: bytes, total: int) -> frozenset[int]:
    """Indexes below `total` that are set in the bitmap; bits that a short bitmap lacks count as zeros."""
    return frozenset(i for i in range(min(total, 8 * len(bitmap))) if bitmap[i // 8] >> (i % 8) & 1)


def done_bitmap(done: Iterable[int], total: int) -> bytes:
    """The bitmap of `done` for `total` splits."""
    bits = 0
    for index in done:
        bits |= 1 << index
    return bits.to_bytes((total + 7) // 8, "little")
