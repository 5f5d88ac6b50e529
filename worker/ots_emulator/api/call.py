"""Context of a call: its instance, its time, its injected fault."""

from __future__ import annotations

from dataclasses import dataclass, field

from ots_emulator.api.rows.patterns import Work
from ots_emulator.instance import Instance
from ots_emulator.refusal import Refusal
from ots_emulator.settings import Settings
from ots_emulator.tables.table import Table


@dataclass(frozen=True, slots=True)
class Call:
    """One call under way; `now` is the service's time in seconds and stands still during the call."""

    instance: Instance
    now: float
    row_refusal: Refusal | None = None
    """Injected refusal of the first row of a batch."""
    work: Work = field(default_factory=Work)
    """What the regular expressions of the call may still do."""

    @property
    def settings(self) -> Settings:
        """Settings of the emulator."""
        return self.instance.settings

    def row_table(self, name: str) -> Table:
        """Return the table of a row call.

        Raises:
            Refusal: there is none of this name, or it is not ready yet.
        """
        table = self.instance.table(name)
        self.check_ready(table)
        return table

    def check_ready(self, table: Table) -> None:
        """Refuse row calls on a new table until its ready delay has passed (docs/data-plane.md 2.4).

        Raises:
            Refusal: OTSTableNotReady.
        """
        delay = self.settings.table_ready_delay
        # The table may come from a time ahead of a clock that was set back.
        if delay and 0 <= self.now_us - table.created_us < delay * 1_000_000:
            raise Refusal("OTSTableNotReady", "The table is not ready.")

    @property
    def now_us(self) -> int:
        """The service's time in microseconds."""
        return int(self.now * 1_000_000)

    @property
    def now_ms(self) -> int:
        """The service's time in milliseconds."""
        return int(self.now * 1000)
