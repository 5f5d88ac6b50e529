"""Interface between the state of an instance and its persistence.

Rows and log entries are reported one by one. Everything else is only marked as touched when a call looks it up: the
journal compares what was touched with what is stored when the call ends, so no code that changes a tunnel has to
report it. `UNKEPT` is the journal of an instance that lives in memory only.
"""

from __future__ import annotations

from typing import Final, Protocol

from ots_emulator.tables.keys import Key
from ots_emulator.tables.listener import TableListener
from ots_emulator.tables.partition import Partition
from ots_emulator.tunnels.channel import TunnelChannel
from ots_emulator.tunnels.tunnel import Tunnel


class Journal(TableListener, Protocol):
    """Receives the changes of one instance and stores them."""

    def tunnel_touched(self, tunnel: Tunnel) -> None:
        """Receive that a tunnel, its channels or its clients may change."""
        ...

    def channel_touched(self, tunnel: Tunnel, channel: TunnelChannel) -> None:
        """Receive that one channel of a tunnel may change, and nothing else of the tunnel."""
        ...

    def everything_touched(self) -> None:
        """Receive that anything may have changed."""
        ...

    def check_writable(self) -> None:
        """Refuse a call whose changes could not be stored.

        Raises:
            Refusal: OTSInternalServerError, an earlier commit failed.
        """
        ...

    def commit(self) -> None:
        """Store all changes since the last commit; the answer is sent only after that.

        Raises:
            Refusal: OTSInternalServerError, the changes could not be stored.
        """
        ...


class Unkept:
    """Ignores every change."""

    def row_changed(self, table: str, key: Key, image: bytes | None, versioned: bool) -> None:
        """Ignore a row."""

    def entry_appended(self, partition: Partition, timestamp_us: int, entry: bytes) -> None:
        """Ignore an entry."""

    def partitions_changed(self, stream_id: str) -> None:
        """Ignore changed partitions."""

    def table_touched(self, table: str) -> None:
        """Ignore a touched table."""

    def tunnel_touched(self, tunnel: Tunnel) -> None:
        """Ignore a touched tunnel."""

    def channel_touched(self, tunnel: Tunnel, channel: TunnelChannel) -> None:
        """Ignore a touched channel."""

    def everything_touched(self) -> None:
        """Ignore that anything may have changed."""

    def check_writable(self) -> None:
        """Never refuse."""

    def commit(self) -> None:
        """Store nothing."""


UNKEPT: Final = Unkept()
