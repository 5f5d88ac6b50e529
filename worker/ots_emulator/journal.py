"""What the state tells whoever keeps it: a journal hears of every change and is told when a call ends.

Rows and log entries are told one by one, because there are many. Of everything else only where somebody looked: what
became of it is seen by comparing when the call ends, so that nothing that changes a tunnel can forget to say so.
Without a data directory nobody listens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ots_emulator.tables.changelog import ChangeLog, Partition
    from ots_emulator.tables.keys import Key
    from ots_emulator.tables.table import Table
    from ots_emulator.tunnels.channel import TunnelChannel
    from ots_emulator.tunnels.tunnel import Tunnel


class Journal(Protocol):
    """Hears of the changes of one instance."""

    def row(self, table: Table, key: Key, image: bytes | None, *, versioned: bool = False) -> None:
        """Hear of a stored row; None is a removed one."""
        ...

    def entry(self, partition: Partition, timestamp_us: int, entry: bytes) -> None:
        """Hear of an entry at the end of a partition's log."""
        ...

    def partitions(self, log: ChangeLog) -> None:
        """Hear that partitions were added, closed, trimmed or removed."""
        ...

    def table(self, table: Table) -> None:
        """Hear that somebody looks at a table, perhaps to change it."""
        ...

    def tunnel(self, tunnel: Tunnel) -> None:
        """Hear that somebody looks at a tunnel, perhaps to change it, its channels or its clients."""
        ...

    def channel(self, tunnel: Tunnel, channel: TunnelChannel) -> None:
        """Hear that somebody looks at one channel of a tunnel, and at nothing else of it."""
        ...

    def everything(self) -> None:
        """Hear that anything may have changed."""
        ...

    def check(self) -> None:
        """Refuse a call that could not be kept.

        Raises:
            Refusal: OTSInternalServerError, an earlier commit failed.
        """
        ...

    def commit(self) -> None:
        """Keep what changed since the last commit; only then may the answer leave.

        Raises:
            Refusal: OTSInternalServerError, it could not be kept.
        """
        ...


class Unkept:
    """The journal of a state that lives in memory only."""

    def row(self, table: Table, key: Key, image: bytes | None, *, versioned: bool = False) -> None:
        """Forget it."""

    def entry(self, partition: Partition, timestamp_us: int, entry: bytes) -> None:
        """Forget it."""

    def partitions(self, log: ChangeLog) -> None:
        """Forget it."""

    def table(self, table: Table) -> None:
        """Forget it."""

    def tunnel(self, tunnel: Tunnel) -> None:
        """Forget it."""

    def channel(self, tunnel: Tunnel, channel: TunnelChannel) -> None:
        """Forget it."""

    def everything(self) -> None:
        """Forget it."""

    def check(self) -> None:
        """Never refuse."""

    def commit(self) -> None:
        """Keep nothing."""


UNKEPT: Final = Unkept()
