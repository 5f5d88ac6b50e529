"""Creates and loads the source table, with a progress bar."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.demo.emulator_admin import EmulatorAdmin
from tests.demo.progress import Story
from tests.demo.scenario import Scenario
from tests.demo.workload import Workload


def load(scenario: Scenario, admin: EmulatorAdmin, workload: Workload, story: Story) -> int:
    """Create the table in partitions, load it through the vendor's SDK, and return the number of rows."""
    admin.post("/partitions", instance=scenario.instance, table=scenario.table, count=scenario.partitions)
    columns = (TextColumn("   {task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=story.console) as progress:
        return workload.load(progress)
