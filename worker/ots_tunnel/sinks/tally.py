"""Counts of a sink beside the stored records, as metrics: every record that is left out is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Self

from ots_tunnel.exposition import Family

#: Most different keys of refused records that a worker tells apart: 8 bytes each, and as much for the set.
MOST_KEYS = 10_000


@dataclass(slots=True)
class Tally:
    """Counts since the start of the worker."""

    records_filtered: int = 0
    """Records that the document's filter rejects, and updates without a remaining column."""
    records_empty: int = 0
    """Updates that change nothing."""
    records_skipped: int = 0
    """Records that the sink refused for good and that were skipped."""
    records_dead_lettered: int = 0
    """Records that the sink refused for good and that became dead letters."""
    keys_refused: int = 0
    """Different keys of the records that the sink refused for good; those beyond MOST_KEYS are not counted."""
    cells_left_out: int = 0
    """Cells of excluded columns."""
    cells_expired: int = 0
    """Cells past the destination's lifetime."""
    write_retries: int = 0
    """Writes that were tried again."""

    @property
    def records_refused(self) -> int:
        """Records that the sink refused for good, whatever became of them."""
        return self.records_skipped + self.records_dead_lettered

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


class TallyCollector:
    """The tally as metrics, computed at each scrape.

    Args:
        tunnel: the tunnel's name, a label of every metric.
        tally: returns the current counts.
    """

    def __init__(self, tunnel: str, tally: Callable[[], Tally]) -> None:
        self._tunnel = tunnel
        self._tally = tally

    def collect(self) -> Iterator[Family]:
        """All counters."""
        tally = self._tally()
        records = {"filter": tally.records_filtered, "empty_update": tally.records_empty}
        yield self._counter("omitted_records", "Records not written on purpose.", "reason", records)
        cells = {"columns": tally.cells_left_out, "expired": tally.cells_expired}
        yield self._counter("omitted_cells", "Cells not written on purpose.", "reason", cells)
        refused = {"skip": tally.records_skipped, "dead_letter": tally.records_dead_lettered}
        yield self._counter("refused_records", "Records that the sink refused for good.", "policy", refused)
        yield self._counter("sink_retries", "Writes that were tried again.", "", {"": tally.write_retries})

    def _counter(self, name: str, text: str, label: str, values: dict[str, int]) -> Family:
        family = Family(f"ots_tunnel_{name}", "counter", text)
        for value, count in values.items():
            family.add({"tunnel": self._tunnel} | ({label: value} if label else {}), count)
        return family
