"""What Spark's progress of a query tells about it, and how old that is. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ots_tunnel.query.record import PassedGap, QueryProgress, all_gaps

#: Age of figures, in seconds, from which on they are old; own choice.
LONG_BATCH_SECONDS: Final = 30.0


def progress_of(found: Mapping[str, Any]) -> QueryProgress:
    """The figures of a query from Spark's last progress.

    Where nothing was to do, Spark gives the number of the batch that comes next. A batch without rows is one as well:
    it carries the positions behind pages that hold none.
    """
    report, last = _report(found), found["batchId"] - (0 if _has_run(found) else 1)
    return QueryProgress(
        batch_id=last if last >= 0 else None,
        rows_per_second=_rounded(found.get("inputRowsPerSecond") or 0.0),
        lag_seconds=_rounded(report.get("lagSeconds")),
        channels=report.get("channels"),
        read_until=report.get("readUntil"),
        passed_gaps=all_gaps(_gaps(report)),
    )


@dataclass(slots=True)
class FiguresAge:
    """How old the figures of Spark's last progress are, from looks at the query one after another.

    Spark asks the source when a batch begins, and tells its answer when the batch ends: the figures are as old as the
    batch then. They get older while the next trigger is active. A pause between triggers does not count: nothing waits
    in an idle table, and the next trigger, which asks again, is known by a look that finds it active after one that did
    not, or beside other figures.
    """

    _told: str = ""
    _began: float = 0.0
    _was_active: bool = False

    def look(self, found: Mapping[str, Any], *, is_active: bool, now: float) -> float:
        """Seconds since the source was asked, without pauses; `now` is of a monotonic clock."""
        if found["timestamp"] != self._told or not self._was_active:
            self._began = now
        self._told, self._was_active = found["timestamp"], is_active
        return _seconds_of_batch(found) + (now - self._began if is_active else 0.0)


def during_batch(progress: QueryProgress, seconds: float) -> QueryProgress:
    """The figures so long after the source was asked for them; Spark tells no others before the end of a batch.

    What waits is older by so much at most: without that, a batch that hangs would leave a lag of 0 for good. Where the
    lag was not known, as before the first channel is open, what the batch has waits for so long at least.
    """
    if seconds < LONG_BATCH_SECONDS:
        return progress
    return replace(progress, lag_seconds=(progress.lag_seconds or 0) + round(seconds))


def _has_run(found: Mapping[str, Any]) -> bool:
    return bool(found.get("numInputRows")) or "addBatch" in (found.get("durationMs") or {})


def _seconds_of_batch(found: Mapping[str, Any]) -> float:
    """Length of a trigger behind its question to the source."""
    spent = found.get("durationMs") or {}
    return float(spent.get("triggerExecution", 0) - spent.get("latestOffset", 0)) / 1000


def _report(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the source reports (`stream.reader`); nothing before it follows the tunnel."""
    sources = found.get("sources") or ()
    text = sources[0].get("latestOffset") if sources else None
    report = json.loads(text) if isinstance(text, str) and text else text
    return report if isinstance(report, Mapping) else {}


def _gaps(report: Mapping[str, Any]) -> Iterator[PassedGap]:
    """The gaps in whole seconds, none of them narrower."""
    for channel, (start, end) in (report.get("passedGaps") or {}).items():
        yield PassedGap(channel, math.floor(start), math.ceil(end))


def _rounded(figure: float | None) -> int | None:
    return None if figure is None else max(0, round(figure))
