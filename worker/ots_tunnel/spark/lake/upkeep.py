"""When a Delta table is compacted and cleaned: between two batches, in the query's own thread.

So compaction never meets a merge of the same query, which Delta would refuse one of. The first turn is one interval
after the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.lake.tables import place_of, run

#: Hours that Delta keeps files that no present version has: readers of older versions need them. Its own default.
DEFAULT_KEPT_HOURS: Final = 168
#: Setting of a session: tasks that list the files of a table. Its default is 10,000, which takes minutes of a small
#: cluster however few files there are.
_LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


@dataclass(slots=True)
class Upkeep:
    """Compaction and cleaning of one table.

    Args:
        compact_seconds, vacuum_seconds: intervals; 0 is never.
        kept_hours: age of files that cleaning removes; Delta refuses less than 168 unless its own check is off.

    Raises:
        ConfigError: a negative number.
    """

    compact_seconds: float = 3600
    vacuum_seconds: float = 86_400
    kept_hours: int = DEFAULT_KEPT_HOURS
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _done: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("compact_seconds", "vacuum_seconds", "kept_hours"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: found {getattr(self, name)}, allowed is 0 and more")
        now = self.clock()
        self._done = {"OPTIMIZE": now, "VACUUM": now}

    def due(self) -> tuple[str, ...]:
        """The work whose interval is over; it counts as done from now on."""
        now = self.clock()
        intervals = {"OPTIMIZE": self.compact_seconds, "VACUUM": self.vacuum_seconds}
        found = tuple(work for work, interval in intervals.items() if interval and now - self._done[work] >= interval)
        self._done |= dict.fromkeys(found, now)
        return found

    def run(self, spark: Any, path: str) -> None:
        """Do what is due.

        Args:
            spark: the session of a batch, whose settings reach nothing else.
        """
        spark.conf.set(_LISTING_TASKS, str(spark.sparkContext.defaultParallelism))
        for work in self.due():
            ending = f" RETAIN {self.kept_hours} HOURS" if work == "VACUUM" else ""
            run(spark, f"{work} {place_of(path)}{ending}")
