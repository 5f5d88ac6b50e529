"""Our worker's command, which reports at its end when it reached a number of rows, as the vendor's programs do.

python -m tests.bench.programs.milestone_worker ROWS run --config worker.yaml

A sink that confirms later holds rows that are written: the mark is where it has taken as many, the end where it has
confirmed all. The report goes to standard error, because records may go to standard output. This module imports only
what the worker imports itself, because its memory is measured, too.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from ots_tunnel import cli
from ots_tunnel.commands.worker_process import leaving
from ots_tunnel.config import WorkerConfig
from ots_tunnel.model import ChannelType
from ots_tunnel.sinks import Batch, Confirmation, Deferred, Guard, Sink, choice
from ots_tunnel.worker.status import metrics


class Point(NamedTuple):
    """A worker's progress at a moment.

    Args:
        rows: confirmed so far.
        seconds: of wall time.
        cpu_seconds, faults: of the process and of ended children; faults are pages of memory that the kernel has given.
            The vendor's programs do not tell them.
    """

    rows: int
    seconds: float
    cpu_seconds: float
    faults: int = 0


class Milestone:
    """The moment at which `rows` were written, and the last one."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._began = 0.0
        self._taken = 0
        self.marked: Point | None = None
        self.last: Point | None = None

    def taken(self, rows: int) -> None:
        """Note that the sink has taken `rows` more rows, which it confirms later."""
        self._taken += rows
        self.confirmed(self._taken)

    def confirmed(self, rows: int) -> None:
        """Note that `rows` rows have been confirmed so far."""
        now = time.monotonic()
        self._began = self._began or now
        self.last = Point(max(rows, self._taken), now - self._began, *_used())
        if self.marked is None and rows >= self._rows:
            self.marked = self.last

    def line(self) -> str:
        """The printed line; empty if the worker never reached the rows."""
        return "" if self.marked is None else json.dumps({"marked": self.marked, "last": self.last})


def _used() -> tuple[float, int]:
    """CPU seconds and pages that were given."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime, own.ru_minflt + children.ru_minflt


def watch(marks: Milestone) -> None:
    """Report every page that a worker of this process confirms to `marks`, and every page that its sink takes."""

    class Watched(metrics.WorkerMetrics):
        def confirmed(self, channel_type: ChannelType, actions: Mapping[int, int], size_bytes: int) -> None:
            super().confirmed(channel_type, actions, size_bytes)
            marks.confirmed(self.rows_total)

    open_sink = choice.open_sink

    def open_watched(config: WorkerConfig) -> Sink:
        sink = open_sink(config)
        if isinstance(sink, Deferred):
            take = sink.take

            async def watched(batch: Batch, guard: Guard) -> Confirmation:
                confirmation = await take(batch, guard)
                marks.taken(len(batch.records))
                return confirmation

            sink.take = watched
        return sink

    module: Any = metrics
    module.WorkerMetrics = Watched  # the command imports both when it is called
    choice.open_sink = open_watched


if __name__ == "__main__":
    found = Milestone(int(sys.argv.pop(1)))
    watch(found)
    command_module: Any = leaving
    command_module.leave = sys.exit  # the report, and cProfile's, are written after the command
    try:
        cli.main()
    finally:
        print(found.line(), file=sys.stderr, flush=True)
