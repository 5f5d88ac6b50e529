"""Our worker's command, which reports at its end when it reached a number of rows, as the vendor's programs do.

python -m tests.bench.milestone_worker ROWS run --config worker.yaml

This module imports only what the worker imports itself, because its memory is measured, too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from ots_tunnel import cli
from ots_tunnel.model import ChannelType
from ots_tunnel.worker.status import metrics


class Point(NamedTuple):
    """A worker's progress at a moment: rows, seconds of wall time, CPU seconds of the process."""

    rows: int
    seconds: float
    cpu_seconds: float


class Milestone:
    """The moment at which `rows` were confirmed, and the last one."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._began = 0.0
        self.marked: Point | None = None
        self.last: Point | None = None

    def confirmed(self, rows: int) -> None:
        """Note that `rows` rows have been confirmed so far."""
        now = time.monotonic()
        self._began = self._began or now
        self.last = Point(rows, now - self._began, time.process_time())
        if self.marked is None and rows >= self._rows:
            self.marked = self.last

    def line(self) -> str:
        """The printed line; empty if the worker never reached the rows."""
        return "" if self.marked is None else json.dumps({"marked": self.marked, "last": self.last})


def watch(marks: Milestone) -> None:
    """Report every page that a worker of this process confirms to `marks`."""

    class Watched(metrics.WorkerMetrics):
        def confirmed(self, channel_type: ChannelType, actions: Mapping[int, int], size_bytes: int) -> None:
            super().confirmed(channel_type, actions, size_bytes)
            marks.confirmed(self.rows_total)

    module: Any = metrics
    module.WorkerMetrics = Watched  # the command imports it when it is called


if __name__ == "__main__":
    found = Milestone(int(sys.argv.pop(1)))
    watch(found)
    try:
        cli.main()
    finally:
        print(found.line(), flush=True)
