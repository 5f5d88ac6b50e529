"""The table of measured values at the end of a demo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.table import Table

#: What was measured, and how much it is.
Line = tuple[str, str]


def summary(title: str, lines: Iterable[Line], differences: int, first: Iterable[object]) -> Table:
    """The measured values, the number of differences, and the first of them."""
    table = Table("what", "how much", title=title)
    table.columns[1].justify = "right"
    for line in (*lines, ("differences", f"{differences}"), *((f"  {each}", "") for each in first)):
        table.add_row(*line)
    return table


def work_of(rows: int, changes: Mapping[str, int], when: str) -> Iterator[Line]:
    """The rows that were loaded, and the changes that a writer made, by kind."""
    yield "rows loaded", f"{rows:,}"
    yield f"changes {when}", f"{sum(changes.values()):,}"
    for kind, count in sorted(changes.items()):
        yield f"  {kind}", f"{count:,}"
