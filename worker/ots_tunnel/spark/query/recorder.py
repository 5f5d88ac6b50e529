"""Writes the record of a query's progress into its ConfigMap.

Whoever starts the driver makes the ConfigMap before, with the tunnel's id as its label. One with another label belongs
to another tunnel and is never written; a missing one is never made here, because nobody would own it. The record is no
lock: Spark's own log refuses the second of two drivers with one folder of checkpoints.

Figures are written at most every `WRITE_PAUSE` seconds, and those that have not changed every `ALIVE_SECONDS`, as a
sign of life. Until when everything was read changes all the time; that alone is written every `READ_PAUSE` seconds.
While a driver does not know it, that of the record stays: what was read stays read. A gap that the query has passed is
written at once, and stays as well. An API server that does not answer is tried again with the next figures, because the
query does not need it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from ots_tunnel.errors import CodecError, OwnershipLost, ServiceError, TransportError
from ots_tunnel.log_actions import LogAction
from ots_tunnel.query.document import QueryRecordConfig
from ots_tunnel.query.record import ALIVE_SECONDS, PassedGap, QueryProgress, all_gaps, query_items, read_query_record
from ots_tunnel.snapshot.record import PROGRESS_LABEL

#: Least seconds between two writes of figures.
WRITE_PAUSE: Final = 15.0
#: Seconds by which everything was read further, so that it is worth a write: a sixth of the shortest retention of a
#: stream.
READ_PAUSE: Final = 600
#: Writes of one record that may meet a change of its metadata.
MAX_CONFLICTS: Final = 5

logger = logging.getLogger(__name__)


class RecordCalls(Protocol):
    """What the recorder calls; see `cluster.ConfigMaps`."""

    def get(self, name: str) -> dict[str, Any] | None:
        """The ConfigMap; None if it does not exist."""
        ...

    def replace(self, config_map: dict[str, Any]) -> dict[str, Any]:
        """Replace a ConfigMap if its version is still the stored one; return it as stored."""
        ...


@dataclass(slots=True)
class Recorder:
    """The record of one query, for the driver's only thread."""

    config_maps: RecordCalls
    config: QueryRecordConfig
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    _written: QueryProgress | None = None
    #: Those that were passed; the next write has them, also where the one before has failed.
    _gaps: tuple[PassedGap, ...] = ()
    _next: float = float("-inf")
    _silent_until: float = float("-inf")

    def follow(self, progress: QueryProgress) -> None:
        """Record figures, unless they were written not long ago, or others just now.

        Raises:
            OwnershipLost: the ConfigMap is gone, or belongs to another tunnel. ServiceError: it may not be written.
        """
        is_due = self._is_news(progress) or self.clock() >= self._silent_until
        has_gap = all_gaps(self._gaps, progress.passed_gaps) != self._gaps
        if not has_gap and (not is_due or self.clock() < self._next):
            return
        self.note(progress.passed_gaps)
        self._next = self.clock() + WRITE_PAUSE
        try:
            self._write(progress)
        except (TransportError, ServiceError) as error:
            if not error.retryable:
                raise
            logger.warning("progress is not recorded", extra={"action": LogAction.QUERY_PROGRESS, "error": str(error)})

    def note(self, gaps: Iterable[PassedGap]) -> None:
        """Remember gaps that were passed, for the next write."""
        self._gaps = all_gaps(self._gaps, gaps)

    def end(self, error: str, *, is_final: bool) -> None:
        """Record why the query has ended, beside its last figures.

        Raises:
            OwnershipLost, ServiceError, TransportError: it is not recorded.
        """
        last = self._written or QueryProgress()
        self._write(replace(last, passed_gaps=self._gaps, error=error, is_final=is_final))

    def _is_news(self, progress: QueryProgress) -> bool:
        written = self._written
        if written is None or all_gaps(written.passed_gaps, progress.passed_gaps) != written.passed_gaps:
            return True
        if replace(progress, read_until=written.read_until, passed_gaps=written.passed_gaps) != written:
            return True
        if progress.read_until is None:
            return False  # that of the record stays
        return written.read_until is None or progress.read_until >= written.read_until + READ_PAUSE

    def _write(self, progress: QueryProgress) -> None:
        for conflicts_left in reversed(range(MAX_CONFLICTS)):
            stored = self._read()
            before = _recorded(stored)
            progress = replace(progress, passed_gaps=all_gaps(before.passed_gaps, progress.passed_gaps))
            if progress.read_until is None:
                progress = replace(progress, read_until=before.read_until)
            items = query_items(progress, self.config.label, self.now())
            try:
                self.config_maps.replace({**stored, "data": items})
            except OwnershipLost:
                if not conflicts_left:
                    raise
            else:
                break
        self._written = progress
        self._silent_until = self.clock() + ALIVE_SECONDS

    def _read(self) -> dict[str, Any]:
        place = f"ConfigMap {self.config.config_map!r} in namespace {self.config.namespace!r}"
        stored = self.config_maps.get(self.config.config_map)
        if stored is None:
            raise OwnershipLost(f"{place}: it does not exist: make it before the driver starts")
        found = (stored["metadata"].get("labels") or {}).get(PROGRESS_LABEL)
        if found != self.config.label:
            raise OwnershipLost(
                f"{place}: label {PROGRESS_LABEL}: found {found!r}, allowed is {self.config.label!r}: "
                "it belongs to something else and stays as it is"
            )
        return stored


def _recorded(stored: dict[str, Any]) -> QueryProgress:
    """What former drivers have recorded; nothing where the record is damaged, which is about to be written again."""
    try:
        return read_query_record(stored).progress
    except CodecError:
        return QueryProgress()
