"""The record of a snapshot's progress in the cluster, written with optimistic locking.

The ConfigMap carries this copy's label, which the operator sets before it starts the driver; one without it belongs to
another owner, or to a newer copy, and is never written. Items of an older copy below our label are replaced before the
first row is read. A change by another writer after `load` means that another driver is running; this one stops.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.log_actions import LogAction
from ots_tunnel.snapshot.document import ProgressConfig
from ots_tunnel.snapshot.record import DONE_KEY, PROGRESS_LABEL, SPLITS_KEY, binary_item, done_bitmap, done_splits
from ots_tunnel.snapshot.splits import SplitList, deserialise

#: Least seconds between two writes, so that thousands of short splits do not load the API server.
WRITE_PAUSE: Final = 1.0
logger = logging.getLogger(__name__)


class RecordCalls(Protocol):
    """What a record calls; see `cluster.ConfigMaps`."""

    def get(self, name: str) -> dict[str, Any] | None:
        """The ConfigMap; None if it does not exist."""
        ...

    def create(self, config_map: dict[str, Any]) -> dict[str, Any]:
        """Create a ConfigMap; return it as stored."""
        ...

    def replace(self, config_map: dict[str, Any]) -> dict[str, Any]:
        """Replace a ConfigMap if its version is still the stored one; return it as stored."""
        ...


@dataclass(slots=True)
class ProgressRecord:
    """The record of one copy as this driver knows it; a write waits until the last one is a second old."""

    config_maps: RecordCalls
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
        """Read the record; items of another copy are ignored.

        Raises:
            CodecError: the record is damaged.
            OwnershipLost: the ConfigMap of the record's name does not carry this copy's label.
        """
        self._stored = self.config_maps.get(self.config.config_map)
        self.splits, self.done, self._uncertain = None, frozenset(), False
        self._refuse_foreign()
        if self._stored is None or (self._stored.get("data") or {}).get("label") != self.config.label:
            return
        self.splits = deserialise(binary_item(self._stored, SPLITS_KEY))
        self.done = done_splits(binary_item(self._stored, DONE_KEY), len(self.splits))

    def _refuse_foreign(self) -> None:
        if self._stored is None:
            return
        found = (self._stored["metadata"].get("labels") or {}).get(PROGRESS_LABEL)
        if found != self.config.label:
            carries = "no such label" if found is None else repr(found)
            raise OwnershipLost(
                f"ConfigMap {self.config.config_map!r} in namespace {self.config.namespace!r}: label {PROGRESS_LABEL}: "
                f"found {carries}, allowed is {self.config.label!r}: it belongs to something else and stays as it is"
            )

    def freeze(self, splits: SplitList, payload: bytes) -> None:
        """Store the list with no split done; every later driver with this label uses it.

        Raises:
            OwnershipLost: another driver wrote since `load`.
        """
        self._write(splits, frozenset(), {SPLITS_KEY: base64.b64encode(payload).decode()})

    def mark(self, done: Iterable[int]) -> None:
        """Record these splits as done as well; without a new split nothing is written.

        The call may be repeated after an error: if the answer of a write was lost, the record is read first.

        Raises:
            OwnershipLost: another driver wrote since our last write.
        """
        assert self.splits is not None, "freeze comes first"
        all_done = self.done | frozenset(done)
        if all_done == self.done:
            return
        if self._uncertain:
            self._look_up(all_done)
        if all_done != self.done:
            self._write(self.splits, all_done, {})

    def _look_up(self, all_done: frozenset[int]) -> None:
        """After a lost answer, load the record and check that the last write can only be our own."""
        frozen, known = self.splits, self.done
        self.load()
        if self.splits != frozen or not known <= self.done <= all_done:
            raise OwnershipLost("progress record: another driver of this snapshot is running")

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
