"""When a table is compacted and cleaned: between two batches, in the query's own thread.

So compaction never meets a merge of the same query, of which a table would refuse one. The first turn is one interval
after the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.lake.tables.lake_table import LakeTable

#: Hours for which files stay that no present version has: readers of older versions need them. The default of Delta.
DEFAULT_KEPT_HOURS: Final = 168
_COMPACT, _CLEAN = "compact", "clean"


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
        self._done = {_COMPACT: now, _CLEAN: now}

    def due(self) -> tuple[str, ...]:
        """The work whose interval is over; it counts as done from now on."""
        now = self.clock()
        intervals = {_COMPACT: self.compact_seconds, _CLEAN: self.vacuum_seconds}
        found = tuple(work for work, interval in intervals.items() if interval and now - self._done[work] >= interval)
        self._done |= dict.fromkeys(found, now)
        return found

    def run(self, table: LakeTable) -> None:
        """Do what is due.

        Args:
            table: with the session of a batch, whose settings reach nothing else.
        """
        for work in self.due():
            if work == _COMPACT:
                table.compact()
            else:
                table.clean(self.kept_hours)
