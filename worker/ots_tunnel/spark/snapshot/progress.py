"""The record of a snapshot's progress in the cluster: written with optimistic locking, and the driver's right to go on.

Theory of operation
-------------------
The operator makes the ConfigMap, with this copy's label, before it starts the driver. One without the label belongs to
another owner, or to a newer copy, and is never written; a missing one is never made here, because nobody would own it.
Items of an older copy below our label are replaced before the first row is read.

The record is written up to once a second, so it is small: a bitmap and some cursors. The frozen list, of up to 900 KB,
is an immutable ConfigMap beside it (`split_lists`), which is read once by each driver.

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

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from ots_tunnel.errors import OwnershipLost
from ots_tunnel.fence import boottime
from ots_tunnel.log_actions import LogAction
from ots_tunnel.snapshot.copied import Copied, Report
from ots_tunnel.snapshot.document import ProgressConfig
from ots_tunnel.snapshot.items import list_name, read_copied, with_copied
from ots_tunnel.snapshot.record import CUT_OFF_SECONDS, PROGRESS_LABEL, WRITE_DEADLINE_KEY, longest_deadline
from ots_tunnel.snapshot.splits import Split, SplitList
from ots_tunnel.spark.snapshot.split_lists import Document, ListCalls, read_list, store_list

#: Least seconds between two writes, so that thousands of short splits do not load the API server.
WRITE_PAUSE: Final = 1.0

#: Most bytes a second of items that are written again and again; a larger record is written less often. Own choice.
WRITE_BYTES_PER_SECOND: Final = 65_536

#: Most seconds between two calls that ask whether the record is still this driver's.
CONFIRM_SECONDS: Final = 10.0

#: Seconds of `CUT_OFF_SECONDS` that are not used: the API server may take the token of a deleted pod for 10 s longer,
#: and a job takes a moment to end.
CUT_OFF_MARGIN: Final = 30.0

#: Writes of one `mark` that may meet a change of the record's metadata.
MAX_CONFLICTS: Final = 5

logger = logging.getLogger(__name__)


class RecordCalls(ListCalls, Protocol):
    """What a record calls; see `cluster.ConfigMaps`."""

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
    copied: Copied = field(default_factory=Copied)
    _stored: Document = field(default_factory=dict, repr=False)
    _longest_deadline: float = 0.0
    """Of this copy's earlier drivers."""
    _doubtful: set[bytes] = field(default_factory=set, repr=False)
    """Digests of the writes after `_stored` whose answers were lost: each of them may have been carried out, or may
    still be. Writes may be refused for hours, so the writes themselves, of up to 0.2 MB each, are not kept."""
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
            OwnershipLost: another driver wrote since `load`, or another list is where this one belongs.
        """
        name = store_list(self.config_maps, self._stored, payload)
        self._write(splits, Copied(), (), name=name)

    def pending(self) -> list[Split]:
        """What is left of every unfinished split."""
        assert self.splits is not None, "freeze comes first"
        return self.copied.pending(self.splits)

    @property
    def is_complete(self) -> bool:
        """Whether every split is recorded as done."""
        return self.splits is not None and len(self.copied.done) == len(self.splits)

    def mark(self, reports: Collection[Report]) -> None:
        """Record what was copied; where nothing is new, the record is read from time to time.

        The call may be repeated after an error: if the answer of a write was lost, the record is read first.

        Raises:
            OwnershipLost: another driver wrote since our last write, or the record is gone.
        """
        assert self.splits is not None, "freeze comes first"
        if self._doubtful or self.clock() >= self._confirmed + CONFIRM_SECONDS:
            self._confirm()
        if self.copied.after(reports, self.splits) != self.copied:
            self._write(self.splits, self.copied, reports)

    def give_up(self, error: str) -> None:
        """Record why no other attempt can do better.

        Args:
            error: one line.

        Raises:
            OwnershipLost: as `mark`.
        """
        assert self.splits is not None, "freeze comes first"
        self._write(self.splits, self.copied, (), error=error)

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
        splits, copied, longest = None, Copied(), 0.0
        if (stored.get("data") or {}).get("label") == self.config.label:
            # the list never changes: it is read once
            is_known = self.splits is not None and list_name(stored) == list_name(self._stored) != ""
            splits = self.splits if is_known else read_list(self.config_maps, stored)
            assert splits is not None
            copied, longest = read_copied(stored, splits), longest_deadline(stored) or 0.0
        self._stored, self.splits, self.copied, self._longest_deadline = stored, splits, copied, longest

    def _confirm(self) -> None:
        """Read the record: only this driver's own writes can have changed its items."""
        stored = self._read()
        if _digest(stored) not in {_digest(self._stored), *self._doubtful}:
            raise OwnershipLost("progress record: another driver of this snapshot is running")
        if _version(stored) != _version(self._stored):
            self._doubtful = set()  # each was made for a version that is gone
        self._take(stored)

    def _write(
        self, splits: SplitList, before: Copied, reports: Collection[Report], *, name: str = "", error: str = ""
    ) -> None:
        pause = max(WRITE_PAUSE, self._size() / WRITE_BYTES_PER_SECOND)
        self.sleep(max(0.0, self._written + pause - time.monotonic()))
        for conflicts_left in reversed(range(MAX_CONFLICTS)):
            copied = before.after(reports, splits)
            document, sent = self._document(len(splits), copied, name, error), self.clock()
            self._doubtful.add(_digest(document))
            self._written = time.monotonic()
            try:
                self._stored = self.config_maps.replace(document)
            except OwnershipLost:
                self._confirm()
                if not conflicts_left:
                    raise
                if not name:
                    before = self.copied  # an earlier write may have arrived only now
            else:
                self._confirmed, self._doubtful = sent, set()
                self.splits, self.copied = splits, copied
                break
        extra = {"action": LogAction.SNAPSHOT_PROGRESS}
        logger.info("recorded %d of %d splits", len(self.copied.done), len(splits), extra=extra)

    def _size(self) -> int:
        return sum(map(len, (self._stored.get("binaryData") or {}).values()))

    def _document(self, total: int, copied: Copied, name: str, error: str) -> Document:
        longest = max(self.write_deadline, self._longest_deadline)
        written = {"label": self.config.label, WRITE_DEADLINE_KEY: f"{longest:.3f}", "writer": self.writer}
        written["updated"] = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds")
        return with_copied(self._stored, copied, total, written, list_name=name, error=error)


def _version(stored: Document) -> Any:
    return stored["metadata"].get("resourceVersion")


def _digest(stored: Document) -> bytes:
    """Digest of a record's items."""
    items = json.dumps([stored.get("data") or {}, stored.get("binaryData") or {}], sort_keys=True)
    return hashlib.sha256(items.encode()).digest()
