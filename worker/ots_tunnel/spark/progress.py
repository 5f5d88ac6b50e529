"""The record of a snapshot's progress in the cluster: written with optimistic locking, and the driver's right to go on.

Theory of operation
-------------------
The operator makes the ConfigMap, with this copy's label, before it starts the driver. One without the label belongs to
another owner, or to a newer copy, and is never written; a missing one is never made here, because nobody would own it.
Items of an older copy below our label are replaced before the first row is read.

The items tell whose record it is. As long as they are what this driver has written, a change of anything else (labels,
annotations, owners) is nobody's concern: after a conflict the record is read, and the write is repeated. Other items
mean that another driver is running; this one stops.

A driver that is cut off from the API server learns nothing of that. The cluster may have given its pod up and started
another driver, the copy may be over, and workers may follow the stream. So the driver asks at least every
`CONFIRM_SECONDS`, and tasks may start only while the last answer is young enough (`check`). The API server answers
nobody whose pod is deleted, apart from seconds in which it still remembers the pod's token.

Example: the last call with an answer was sent at 12:00:00, then the node loses its network. At 12:01:30 `check` forbids
further tasks, and the driver ends its job. Its pod may have been deleted at 11:59:50 at the earliest: no task starts
later than `CUT_OFF_SECONDS` after that.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.snapshot.document import ProgressConfig
from ots_tunnel.snapshot.record import (
    CUT_OFF_SECONDS,
    DONE_KEY,
    OMITTED_KEY,
    PROGRESS_LABEL,
    SPLITS_KEY,
    WRITE_DEADLINE_KEY,
    binary_item,
    done_bitmap,
    done_splits,
    longest_deadline,
    omitted_cells,
)
from ots_tunnel.snapshot.splits import SplitList, deserialise

#: Least seconds between two writes, so that thousands of short splits do not load the API server.
WRITE_PAUSE: Final = 1.0

#: Most seconds between two calls that ask whether the record is still this driver's.
CONFIRM_SECONDS: Final = 10.0

#: Seconds of `CUT_OFF_SECONDS` that are not used: the API server may take the token of a deleted pod for 10 s longer,
#: and a job takes a moment to end.
CUT_OFF_MARGIN: Final = 30.0

#: Writes of one `mark` that may meet a change of the record's metadata.
MAX_CONFLICTS: Final = 5

logger = logging.getLogger(__name__)


#: A ConfigMap as JSON.
Document = dict[str, Any]


class RecordCalls(Protocol):
    """What a record calls; see `cluster.ConfigMaps`."""

    def get(self, name: str) -> Document | None:
        """The ConfigMap; None if it does not exist."""
        ...

    def replace(self, config_map: Document) -> Document:
        """Replace a ConfigMap if its version is still the stored one; return it as stored."""
        ...


@dataclass(slots=True)
class ProgressRecord:
    """The record of one copy as this driver knows it; a write waits until the last one is a second old."""

    config_maps: RecordCalls
    config: ProgressConfig
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = boottime
    """Monotonic seconds, suspended time included."""
    writer: str = field(default_factory=lambda: secrets.token_hex(8))
    """Distinguishes this driver's writes from equal ones of another driver."""
    write_deadline: float = field(kw_only=True)
    """D of this driver's tasks, seconds."""
    splits: SplitList | None = None
    """The frozen list, None before `freeze`."""
    done: frozenset[int] = frozenset()
    omitted: int | None = 0
    """Cells of the splits in `done` that were left out; None where an earlier release did not count some of them."""
    _stored: Document = field(default_factory=dict, repr=False)
    _longest_deadline: float = 0.0
    """Of this copy's earlier drivers."""
    _doubtful: set[bytes] = field(default_factory=set, repr=False)
    """Digests of the writes after `_stored` whose answers were lost: each of them may have been carried out, or may
    still be. Writes may be refused for hours, so the writes themselves, of up to 1.2 MB each, are not kept."""
    _confirmed: float = float("-inf")
    _written: float = float("-inf")

    def load(self) -> None:
        """Read the record; items of another copy are ignored.

        Raises:
            CodecError: the record is damaged.
            OwnershipLost: there is no ConfigMap of the record's name, or it does not carry this copy's label.
        """
        self._doubtful = set()
        self._take(self._read())

    def check(self) -> None:
        """Check that tasks may start now.

        Raises:
            OwnershipLost: the API server has not confirmed the record for so long that another driver may run.
        """
        unconfirmed = self.clock() - self._confirmed
        if unconfirmed >= CUT_OFF_SECONDS - CUT_OFF_MARGIN:
            raise OwnershipLost(
                f"the API server has not confirmed the progress record for {unconfirmed:.0f} s: "
                "another driver may have been started"
            )

    def freeze(self, splits: SplitList, payload: bytes) -> None:
        """Store the list with no split done; every later driver with this label uses it.

        Raises:
            OwnershipLost: another driver wrote since `load`.
        """
        self._write(splits, {}, {SPLITS_KEY: base64.b64encode(payload).decode()})

    def mark(self, done: Mapping[int, int]) -> None:
        """Record these splits as done as well; without a new split, the record is read from time to time.

        The call may be repeated after an error: if the answer of a write was lost, the record is read first.

        Args:
            done: number of omitted cells of each split.

        Raises:
            OwnershipLost: another driver wrote since our last write, or the record is gone.
        """
        assert self.splits is not None, "freeze comes first"
        if self._doubtful or self.clock() >= self._confirmed + CONFIRM_SECONDS:
            self._confirm()
        if not self.done.issuperset(done):
            self._write(self.splits, done, {})

    def _read(self) -> Document:
        """The ConfigMap, which carries this copy's label."""
        sent, place = self.clock(), f"ConfigMap {self.config.config_map!r} in namespace {self.config.namespace!r}"
        stored = self.config_maps.get(self.config.config_map)
        if stored is None:
            raise OwnershipLost(f"{place}: it does not exist: the operator makes it before it starts a driver")
        found = (stored["metadata"].get("labels") or {}).get(PROGRESS_LABEL)
        if found != self.config.label:
            carries = "no such label" if found is None else repr(found)
            raise OwnershipLost(
                f"{place}: label {PROGRESS_LABEL}: "
                f"found {carries}, allowed is {self.config.label!r}: it belongs to something else and stays as it is"
            )
        self._confirmed = sent
        return stored

    def _take(self, stored: Document) -> None:
        """What is stored is the record from now on."""
        self._stored, self.splits, self.done, self.omitted = stored, None, frozenset(), 0
        self._longest_deadline = 0.0
        if (stored.get("data") or {}).get("label") == self.config.label:
            self.splits = deserialise(binary_item(stored, SPLITS_KEY))
            self.done = done_splits(binary_item(stored, DONE_KEY), len(self.splits))
            self.omitted = omitted_cells(stored)
            self._longest_deadline = longest_deadline(stored) or 0.0

    def _confirm(self) -> None:
        """Read the record: only this driver's own writes can have changed its items."""
        stored = self._read()
        if _digest(stored) not in {_digest(self._stored), *self._doubtful}:
            raise OwnershipLost("progress record: another driver of this snapshot is running")
        if _version(stored) != _version(self._stored):
            self._doubtful = set()  # each was made for a version that is gone
        self._take(stored)

    def _write(self, splits: SplitList, done: Mapping[int, int], binary: dict[str, str]) -> None:
        self.sleep(max(0.0, self._written + WRITE_PAUSE - time.monotonic()))
        for conflicts_left in reversed(range(MAX_CONFLICTS)):
            # after a conflict `self.done` may be another one: an earlier write may have arrived only now
            all_done = self.done | frozenset(done)
            new = sum(done[split] for split in all_done - self.done)
            omitted = None if self.omitted is None else self.omitted + new
            document, sent = self._document(len(splits), all_done, omitted, binary), self.clock()
            self._doubtful.add(_digest(document))
            self._written = time.monotonic()
            try:
                self._stored = self.config_maps.replace(document)
            except OwnershipLost:
                self._confirm()
                if not conflicts_left:
                    raise
            else:
                self._confirmed, self._doubtful = sent, set()
                self.splits, self.done, self.omitted = splits, all_done, omitted
                break
        extra = {"action": LogAction.SNAPSHOT_PROGRESS}
        logger.info("recorded %d of %d splits", len(self.done), len(splits), extra=extra)

    def _document(self, total: int, done: frozenset[int], omitted: int | None, binary: dict[str, str]) -> Document:
        data = {
            "label": self.config.label,
            "total": str(total),
            "done": str(len(done)),
            WRITE_DEADLINE_KEY: f"{max(self.write_deadline, self._longest_deadline):.3f}",
            "writer": self.writer,
            "updated": datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds"),
        }
        if omitted is not None:
            data[OMITTED_KEY] = str(omitted)
        bitmap = base64.b64encode(done_bitmap(done, total)).decode()
        binary_data = {**(self._stored.get("binaryData") or {}), **binary, DONE_KEY: bitmap}
        return {**self._stored, "data": data, "binaryData": binary_data}


def _version(stored: Document) -> Any:
    return stored["metadata"].get("resourceVersion")


def _digest(stored: Document) -> bytes:
    """Digest of a record's items."""
    items = json.dumps([stored.get("data") or {}, stored.get("binaryData") or {}], sort_keys=True)
    return hashlib.sha256(items.encode()).digest()
