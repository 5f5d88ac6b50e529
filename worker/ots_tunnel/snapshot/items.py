"""What is copied, as items of the progress record. Pure; `record` describes every item."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ots_tunnel.snapshot import cursors
from ots_tunnel.snapshot.copied import Copied
from ots_tunnel.snapshot.record import (
    CURSORS_KEY,
    DONE_KEY,
    ERROR_KEY,
    LIST_KEY,
    OMITTED_KEY,
    SPLITS_KEY,
    binary_item,
    done_bitmap,
    done_splits,
    omitted_cells,
)
from ots_tunnel.snapshot.splits import SplitList


def list_name(config_map: Mapping[str, Any]) -> str:
    """Name of the ConfigMap with the record's list; empty where the record has none, or has it itself."""
    return str((config_map.get("data") or {}).get(LIST_KEY, ""))


def read_copied(config_map: Mapping[str, Any], splits: SplitList) -> Copied:
    """What is copied by a stored record with this list.

    Raises:
        CodecError: an item is damaged; names it.
    """
    done = done_splits(binary_item(config_map, DONE_KEY), len(splits))
    return Copied(done, cursors.deserialise(binary_item(config_map, CURSORS_KEY), splits), omitted_cells(config_map))


def with_copied(
    config_map: Mapping[str, Any], copied: Copied, total: int, written: Mapping[str, str], *, list_name: str, error: str
) -> dict[str, Any]:
    """A record with what is copied; other items of `binaryData`, and everything beside the items, stay.

    Args:
        total: number of splits.
        written: items that say who wrote this and when.
        list_name: name of a new list's ConfigMap; empty keeps the list that the record has.
        error: why the driver has given up; empty where it has not.
    """
    data = {**written, "total": str(total), "done": str(len(copied.done))}
    binary = {**(config_map.get("binaryData") or {}), DONE_KEY: _base64(done_bitmap(copied.done, total))}
    binary.pop(CURSORS_KEY, None)
    if copied.cursors:
        binary[CURSORS_KEY] = _base64(cursors.serialise(copied.cursors))
    if list_name:
        data[LIST_KEY] = list_name
        binary.pop(SPLITS_KEY, None)  # of another copy, by an earlier release
    elif known := (config_map.get("data") or {}).get(LIST_KEY):
        data[LIST_KEY] = known
    if copied.omitted is not None:
        data[OMITTED_KEY] = str(copied.omitted)
    if error:
        data[ERROR_KEY] = error
    return {**config_map, "data": data, "binaryData": binary}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
