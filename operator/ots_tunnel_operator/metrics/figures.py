"""What the status of an object says in numbers. Pure. Unknown is absent, never 0.

A condition is one sample with its reason as a label, so that an alert names the paragraph of docs/operations.md that
explains it. Its value is 1 for True, 0 for False and -1 for Unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Labels of a sample beside namespace and name, and its value.
Sample = tuple[tuple[str, ...], float]

#: Metric -> its text and its labels beside namespace and name.
GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "condition": ("Status of a condition: 1 True, 0 False, -1 Unknown.", ("type", "reason")),
    "phase": ("1 for the phase that the object is in.", ("phase",)),
    "lag_seconds": ("Lag of the slowest channel in seconds.", ()),
    "lag_limit_seconds": ("Lag from which the object is Degraded, with what files hold.", ()),
    "retention_used_percent": ("Share of the stream's retention that unconsumed changes use, in percent.", ()),
    "retention_limit_percent": (
        "Share from which the object is Degraded: spec.monitoring.retentionWarningPercent.",
        (),
    ),
    "total_channels": ("Channels of the tunnel, whatever their state.", ()),
    "open_channels": ("Channels that a worker reads.", ()),
    "closing_channels": ("Channels that are being taken from a worker.", ()),
    "terminated_channels": ("Channels that have been read to their end.", ()),
    "unowned_channels": ("Channels that are ready to be read but are assigned to no worker.", ()),
    "base_percent": ("Share of the existing rows that is copied, in percent, by channels or splits.", ()),
    "rows_per_second": ("Rows per second, summed over all workers.", ()),
    "ready_workers": ("Worker pods that are ready.", ()),
    "wanted_workers": ("Worker pods that should exist now.", ()),
    "recommended_workers": ("Workers that the load asks for (spec.autoscaling.mode Advise or Auto).", ()),
    "useful_workers": ("Channels that can be read at the same time: more workers would have nothing to do.", ()),
    "catchup_ratio": ("Seconds of changes consumed in a second; below 1 the lag grows.", ()),
    "unaccepted_gaps": ("Possible gaps that onPossibleGap Continue has not accepted.", ()),
    "claim_unreadable": ("1 while it cannot be read whether the operator that the object names still runs.", ()),
    "snapshot_omitted_cells": ("Cells that the snapshot by Spark did not write on purpose.", ()),
}

#: Gauges whose value is a figure of the status: metric -> path.
_PATHS: Mapping[str, tuple[str, ...]] = {
    "lag_seconds": ("lag", "seconds"),
    "retention_used_percent": ("lag", "retentionUsedPercent"),
    "total_channels": ("channels", "total"),
    "open_channels": ("channels", "open"),
    "closing_channels": ("channels", "closing"),
    "terminated_channels": ("channels", "terminated"),
    "unowned_channels": ("channels", "unowned"),
    "base_percent": ("base", "percent"),
    "rows_per_second": ("throughput", "rowsPerSecond"),
    "ready_workers": ("readyReplicas",),
    "recommended_workers": ("autoscaling", "recommendedReplicas"),
    "useful_workers": ("autoscaling", "usefulMaxReplicas"),
    "snapshot_omitted_cells": ("snapshot", "omittedCells"),
}

_VALUES = {"True": 1.0, "False": 0.0, "Unknown": -1.0}


def verdicts(status: Mapping[str, Any]) -> Iterator[tuple[str, Sample]]:
    """What holds of a status even where its figures are old: conditions, phase and recorded gaps."""
    for item in status.get("conditions") or ():
        yield "condition", ((item["type"], item["reason"]), _VALUES[item["status"]])
    if phase := status.get("phase"):
        yield "phase", ((phase,), 1.0)
    gaps = status.get("possibleGaps") or ()
    yield "unaccepted_gaps", ((), float(sum(not gap.get("accepted") for gap in gaps)))


def figures(status: Mapping[str, Any]) -> Iterator[tuple[str, Sample]]:
    """The figures of a status that was observed just now."""
    for metric, path in _PATHS.items():
        value: Any = status
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            yield metric, ((), float(value))
