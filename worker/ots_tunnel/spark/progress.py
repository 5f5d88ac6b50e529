"""The record of a snapshot's progress in the cluster, written with optimistic locking.

A record of another label belongs to another copy and is replaced before the first read. Once this driver has
written its own record, a change by another writer means that another driver is running; this one stops.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.log_actions import LogAction
from ots_tunnel.snapshot.document import ProgressConfig
from ots_tunnel.snapshot.record import DONE_KEY, PROGRESS_LABEL, SPLITS_KEY, binary_item, done_bitmap, done_splits
from ots_tunnel.snapshot.splits import SplitList, deserialise
from ots_tunnel.spark.cluster import ConfigMaps

#: At most one write in so many seconds (design: snapshot before stream, point 2).
WRITE_PAUSE: Final = 1.0
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ProgressRecord:
    """The record of one copy, as this driver knows it; writes wait until the last one is a second old."""

    config_maps: ConfigMaps
    config: ProgressConfig
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    splits: SplitList | None = None
    """The frozen list, None before `freeze`."""
    done: frozenset[int] = frozenset()
    _stored: dict[str, Any] | None = field(default=None, repr=False)
    _uncertain: bool = False
    _written: float = float("-inf")

    def load(self) -> None:
        """Read the record; what belongs to another label counts as nothing.

        Raises:
            CodecError: the record was damaged.
        """
        self._stored = self.config_maps.get(self.config.config_map)
        self.splits, self.done, self._uncertain = None, frozenset(), False
        if self._stored is None or (self._stored.get("data") or {}).get("label") != self.config.label:
            return
        self.splits = deserialise(binary_item(self._stored, SPLITS_KEY))
        self.done = done_splits(binary_item(self._stored, DONE_KEY), len(self.splits))

    def freeze(self, splits: SplitList, payload: bytes) -> None:
        """Store the list, nothing done; it holds for every later driver of this label.

        Raises:
            OwnershipLost: another driver wrote since `load`.
        """
        self._write(splits, frozenset(), {SPLITS_KEY: base64.b64encode(payload).decode()})

    def mark(self, done: Iterable[int]) -> None:
        """Record these splits as done, besides those that are; no write when there is nothing new.

        A failed call may be repeated: a write whose answer was lost is looked up first.

        Raises:
            OwnershipLost: another driver wrote since our last write.
        """
        assert self.splits is not None, "freeze comes first"
        merged = self.done | frozenset(done)
        if merged == self.done:
            return
        if self._uncertain:
            self._look_up(merged)
        if merged != self.done:
            self._write(self.splits, merged, {})

    def _look_up(self, merged: frozenset[int]) -> None:
        """Take over what is stored after a lost answer, if it can only be our own write."""
        frozen, known = self.splits, self.done
        self.load()
        if self.splits != frozen or not known <= self.done <= merged:
            raise OwnershipLost("progress record: another driver of this snapshot is at work")

    def _write(self, splits: SplitList, done: frozenset[int], binary: dict[str, str]) -> None:
        stored = self._stored or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
        labels = {**(stored["metadata"].get("labels") or {}), PROGRESS_LABEL: self.config.label}
        data = {
            "label": self.config.label,
            "total": str(len(splits)),
            "done": str(len(done)),
            "updated": datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds"),
        }
        bitmap = base64.b64encode(done_bitmap(done, len(splits))).decode()
        document = {
            **stored,
            "metadata": {
                **stored["metadata"],
                "name": self.config.config_map,
                "namespace": self.config.namespace,
                "labels": labels,
            },
            "data": data,
            "binaryData": {**(stored.get("binaryData") or {}), **binary, DONE_KEY: bitmap},
        }
        write = self.config_maps.create if self._stored is None else self.config_maps.replace
        self.sleep(max(0.0, self._written + WRITE_PAUSE - time.monotonic()))
        self._uncertain, self._written = True, time.monotonic()
        self._stored = write(document)
        self.splits, self.done, self._uncertain = splits, done, False
        logger.info("recorded %d of %d splits", len(done), len(splits), extra={"action": LogAction.SNAPSHOT_PROGRESS})
