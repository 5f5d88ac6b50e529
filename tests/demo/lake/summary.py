"""The summary at the end of the lake demo."""

from __future__ import annotations

from rich.table import Table

from tests.demo.lake.run import Result
from tests.demo.scenario import Scenario
from tests.demo.summary import summary, work_of


def lake_summary(scenario: Scenario, result: Result) -> Table:
    """Return the measured values as a table."""
    comparison = result.comparison
    lines = (
        *work_of(result.rows, result.changes, "meanwhile"),
        ("until existing rows were there, and a first batch", f"{result.base_seconds:.0f} s"),
        ("recovery after the driver was killed", f"{result.recovery_seconds:.0f} s"),
        ("lag gone after the writer stopped", f"{result.catch_up_seconds:.0f} s"),
        ("batches", f"{result.batches}"),
        ("rows compared", f"{comparison.rows:,}"),
        ("values compared, with their versions", f"{comparison.values:,}"),
    )
    return summary(
        f"{scenario.table} and its mirror in {scenario.table_format}", lines, comparison.differences, comparison.first
    )
