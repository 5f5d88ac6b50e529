"""What the person at the terminal sees: numbered phases, notes, and how long each took."""

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
    """Tells the phases of a run and keeps their seconds."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, why: str = "") -> Iterator[None]:
        """One phase; its time is kept even when it fails."""
        number = len(self.seconds) + 1
        self.console.print(f"\n[bold]{number}. {name}[/bold]" + (f"  [dim]{why}[/dim]" if why else ""))
        begin = time.monotonic()
        self.seconds[name] = 0.0
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - begin

    def note(self, text: str) -> None:
        """A line inside a phase."""
        self.console.print(f"   {text}", markup=False)

    def command(self, *words: str) -> None:
        """A command the reader could type."""
        self.console.print(f"   [cyan]$ {' '.join(words)}[/cyan]")

    def document(self, text: str) -> None:
        """A document, as it would stand in a file."""
        for line in text.rstrip().splitlines():
            self.console.print(f"     [dim]{escape(line)}[/dim]")

    def times(self) -> Table:
        """Phases and their seconds."""
        table = Table("phase", "seconds", title="where the time went")
        table.columns[1].justify = "right"
        for name, seconds in self.seconds.items():
            table.add_row(name, f"{seconds:.0f}")
        table.add_section()
        table.add_row("all", f"{sum(self.seconds.values()):.0f}")
        return table
