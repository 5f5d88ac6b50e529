"""The table in which a benchmark shows its figures beside their goals."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from tests.bench.emulator_target import Goal


def print_goals(goals: Iterable[Goal], title: str, caption: str) -> None:
    """Print a line for each figure: ours, the goal if there is one, and whether it is met."""
    table = Table(title=title, caption=caption)
    table.add_column("what")
    for header in ("ours", "goal"):
        table.add_column(header, justify="right")
    table.add_column("unit")
    table.add_column("met")
    for goal in goals:
        wanted = "" if goal.goal is None else f"{'>=' if goal.at_least else '<='} {goal.goal:,}"
        met = {None: "", True: "yes", False: "NO"}[goal.met]
        ours = f"{goal.ours:,.3f}" if goal.ours < 100 else f"{goal.ours:,.0f}"
        table.add_row(goal.name, ours, wanted, goal.unit, met)
    Console(width=150).print(table)
