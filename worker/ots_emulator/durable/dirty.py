"""Marks of possible changes that the database does not hold yet."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ots_emulator.tables.keys import Key
from ots_emulator.tables.partition import Partition
from ots_emulator.tunnels.channel import TunnelChannel
from ots_emulator.tunnels.tunnel import Tunnel


@dataclass(slots=True)
class Dirty:
    """Marks of one instance since the last commit.

    Rows and entries carry their content; all others only say where to compare.
    """

    rows: defaultdict[str, dict[Key, tuple[bytes | None, bool]]] = field(default_factory=lambda: defaultdict(dict))
    """By table: image (None is a removed row), and whether some column has several versions; the last one counts."""
    entries: defaultdict[Partition, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))
    """Commit time in us and record, in log order."""
    tables: set[str] = field(default_factory=set)
    logs: set[str] = field(default_factory=set)
    """Stream ids of logs whose partitions changed."""
    tunnels: set[Tunnel] = field(default_factory=set)
    channels: set[tuple[Tunnel, TunnelChannel]] = field(default_factory=set)
    everything: bool = False
    """Whether partitions are compared even where nothing reported a change of their log."""

    def clear(self) -> None:
        """Remove all marks."""
        for marks in (self.rows, self.entries, self.tables, self.logs, self.tunnels, self.channels):
            marks.clear()
        self.everything = False
