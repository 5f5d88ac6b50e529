"""The summary at the end of the lake demo."""

from __future__ import annotations

from rich.table import Table

from tests.demo.lake.run import Result
from tests.demo.scenario import Scenario


def lake_summary(scenario: Scenario, result: Result) -> Table:
    """Return the measured values as a table."""
    comparison = result.comparison
    table = Table("what", "how much", title=f"{scenario.table} and its mirror in Delta")
    table.columns[1].justify = "right"
    table.add_row("rows loaded", f"{result.rows:,}")
    table.add_row("changes meanwhile", f"{sum(result.changes.values()):,}")
    for kind, count in sorted(result.changes.items()):
        table.add_row(f"  {kind}", f"{count:,}")
    table.add_row("until existing rows were there, and a first batch", f"{result.base_seconds:.0f} s")
    table.add_row("recovery after the driver was killed", f"{result.recovery_seconds:.0f} s")
    table.add_row("lag gone after the writer stopped", f"{result.catch_up_seconds:.0f} s")
    table.add_row("batches", f"{result.batches}")
    table.add_row("rows compared", f"{comparison.rows:,}")
    table.add_row("values compared, with their versions", f"{comparison.values:,}")
    table.add_row("differences", f"{comparison.differences}")
    for text in comparison.first:
        table.add_row(f"  {text}", "")
    return table
