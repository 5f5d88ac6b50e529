"""Terminal output of the demo: numbered phases, notes, and the duration of each phase."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table


@dataclass
class Story:
    """Prints the phases of a run and records their durations in seconds."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, why: str = "") -> Iterator[None]:
        """Print a phase and record its duration, also when it fails."""
        number = len(self.seconds) + 1
        self.console.print(f"\n[bold]{number}. {name}[/bold]" + (f"  [dim]{why}[/dim]" if why else ""))
        begin = time.monotonic()
        self.seconds[name] = 0.0
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - begin

    def note(self, text: str) -> None:
        """Print a line inside a phase."""
        self.console.print(f"   {text}", markup=False)

    def command(self, *words: str) -> None:
        """Print a command that the reader could type."""
        self.console.print(f"   [cyan]$ {' '.join(words)}[/cyan]")

    def document(self, text: str) -> None:
        """Print a document line by line."""
        for line in text.rstrip().splitlines():
            self.console.print(f"     [dim]{escape(line)}[/dim]")

    def times(self) -> Table:
        """Return a table of the phases and their durations."""
        table = Table("phase", "seconds", title="where the time went")
        table.columns[1].justify = "right"
        for name, seconds in self.seconds.items():
            table.add_row(name, f"{seconds:.0f}")
        table.add_section()
        table.add_row("all", f"{sum(self.seconds.values()):.0f}")
        return table
