"""What Spark's progress of a query tells about it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ots_tunnel.query.record import QueryProgress

#: Seconds of a batch under way from which on the figures of the one before are old; own choice.
LONG_BATCH_SECONDS: Final = 30.0


def progress_of(found: Mapping[str, Any]) -> QueryProgress:
    """The figures of a query from Spark's last progress.

    Where nothing was to do, Spark gives the number of the batch that comes next.
    """
    report, last = _report(found), found["batchId"] - (0 if found.get("numInputRows") else 1)
    return QueryProgress(
        batch_id=last if last >= 0 else None,
        rows_per_second=_rounded(found.get("inputRowsPerSecond") or 0.0),
        lag_seconds=_rounded(report.get("lagSeconds")),
        channels=report.get("channels"),
        read_until=report.get("readUntil"),
    )


def during_batch(progress: QueryProgress, seconds: float) -> QueryProgress:
    """The figures while a batch has been under way since they were told; Spark tells no others before its end.

    What waits is older by so much at most: without that, a batch that hangs would leave a lag of 0 for good.
    """
    if progress.lag_seconds is None or seconds < LONG_BATCH_SECONDS:
        return progress
    return replace(progress, lag_seconds=progress.lag_seconds + round(seconds))


def _report(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the source reports (`stream.reader`); nothing before it follows the tunnel."""
    sources = found.get("sources") or ()
    text = sources[0].get("latestOffset") if sources else None
    report = json.loads(text) if isinstance(text, str) and text else text
    return report if isinstance(report, Mapping) else {}


def _rounded(figure: float | None) -> int | None:
    return None if figure is None else max(0, round(figure))
