"""One instance of the service: its keys, tables and tunnels, and the dependencies between them."""

from __future__ import annotations

import re
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ots_emulator.journal import UNKEPT, Journal
from ots_emulator.memory import Freed
from ots_emulator.pages import PageCache
from ots_emulator.refusal import Refusal, parameter_invalid, table_missing, tunnel_missing
from ots_emulator.settings import Settings
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.keys import Key
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.table import Table
from ots_emulator.tables.transactions import Transactions
from ots_emulator.tunnels.channel import TunnelChannel
from ots_emulator.tunnels.delivery import base_channels, stream_channel, stream_channels
from ots_emulator.tunnels.tunnel import Tunnel
from ots_tunnel.model import StreamConfig, TunnelId, TunnelType

_TUNNEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,254}")
#: A tunnel starts at least this long after the first retained entry (docs/protocol.md 4.2).
_START_MARGIN_NS: Final = 300 * 1_000_000_000
_HOUR_NS: Final = 3_600_000_000_000
#: Consume points are of type int64, and a channel may have reached its end offset.
_OFFSET_LIMIT: Final = 1 << 63
#: Seconds between two looks at all tables for what time has expired.
_LOOK_SECONDS: Final = 60


@dataclass(slots=True, eq=False)
class Instance:
    """Tables and tunnels of one instance; `keys` maps AccessKey ids to secrets."""

    name: str
    keys: Mapping[str, str] = field(repr=False)
    settings: Settings = field(default_factory=Settings)
    tables: dict[str, Table] = field(default_factory=dict)
    tunnels: dict[TunnelId, Tunnel] = field(default_factory=dict)
    partition_aims: dict[str, int] = field(default_factory=dict)
    """Partition counts chosen before their table was created."""
    transactions: Transactions = field(default_factory=Transactions)
    pages: PageCache = field(default_factory=PageCache, repr=False)
    freed: Freed = field(default_factory=Freed, repr=False)
    journal: Journal = field(default=UNKEPT, repr=False)
    _table_operations: deque[float] = field(default_factory=deque, repr=False)
    _last_look: float = 0.0

    # Tables

    def count_table_operation(self, now: float) -> None:
        """Refuse table calls above the limit per second, if one is set.

        Raises:
            Refusal: OTSQuotaExhausted.
        """
        limit = self.settings.table_operations_per_second
        if limit is None:
            return
        # They may have happened at a time ahead of a clock that was set back.
        while self._table_operations and not 0 <= now - self._table_operations[0] < 1:
            self._table_operations.popleft()
        if len(self._table_operations) >= limit:
            raise Refusal("OTSQuotaExhausted", "Too frequent table operations.")
        self._table_operations.append(now)

    def table(self, name: str) -> Table:
        """Return a table.

        Raises:
            Refusal: OTSObjectNotExist.
        """
        table = self.tables.get(name)
        if table is None:
            raise table_missing(name)
        self.journal.table_touched(name)
        return table

    def add_table(self, table: Table) -> None:
        """Add a table.

        Raises:
            Refusal: it exists, or the quota of tables is used up.
        """
        if table.name in self.tables:
            raise Refusal("OTSObjectAlreadyExist", "Requested table already exists.")
        if len(self.tables) >= self.settings.table_quota:
            text = f"Number of tables exceeds the quota:{self.settings.table_quota}."
            raise Refusal("OTSQuotaExhausted", text)
        self.tables[table.name] = table
        self.journal.table_touched(table.name)

    def delete_table(self, name: str) -> None:
        """Delete a table and its tunnels.

        Raises:
            Refusal: OTSObjectNotExist.
        """
        table = self.table(name)
        self.transactions.forget_table(table)
        del self.tables[name]
        self.freed.add(table.size_bytes)
        self._count_log(table)
        for tunnel in self.tunnels_of(name):
            del self.tunnels[tunnel.id]

    def disable_stream(self, table: Table) -> None:
        """Delete a table's change log; tunnels that read it expire."""
        self._count_log(table)
        if table.log is not None:
            # Channels of tunnels refer to its partitions.
            for partition in table.log.partitions.values():
                partition.clear()
        table.disable_stream()
        for tunnel in self.tunnels_of(table.name):
            tunnel.expired = tunnel.expired or tunnel.type is not TunnelType.BaseData

    def clock_set_back(self, now: float) -> None:
        """Let tunnels, clients and transactions wait from now on where their times lie in the future."""
        self.transactions.clock_set_back(now)
        for tunnel in self.tunnels.values():
            tunnel.clock_set_back(now, self.settings.init_delay)

    def look_for_expired(self, now: float) -> bool:
        """Remove what time has expired, also transactions, at most once a minute of the service's time.

        Returns whether it was looked.
        """
        # A clock that was set back counts as well.
        if 0 <= now - self._last_look < _LOOK_SECONDS:
            return False
        self._last_look = now
        self.transactions.expire(now)
        self.freed.add(self.transactions.take_expired())
        for table in self.tables.values():
            self.remove_expired(table, int(now * 1_000_000))
        return True

    def remove_expired(self, table: Table, now_us: int) -> None:
        """Remove what time has expired from a table, and count it with all that was removed before."""
        removed = table.expire_all(now_us)
        if removed:
            self.journal.table_touched(table.name)
            self.pages.clear()
            self.freed.add(removed)

    def _count_log(self, table: Table) -> None:
        """Count the entries of a log that goes; finished pages go with it."""
        self.pages.clear()
        if table.log is not None:
            self.freed.add(table.log.size_bytes)

    def split(
        self, table_name: str, now_us: int, *, partition_id: str | None = None, key: Key | None = None
    ) -> list[Partition]:
        """Split a partition, by default the one with most rows; return parent and children.

        Raises:
            Refusal: no such table or partition, or it cannot be split.
        """
        table = self.table(table_name)
        return table.split(_partition(table, partition_id), now_us, at=key)

    def merge(self, table_name: str, now_us: int, *, partition_id: str | None = None) -> list[Partition]:
        """Merge a partition with its successor; return both parents and the child.

        Raises:
            Refusal: no such table or partition, or it has no successor.
        """
        table = self.table(table_name)
        return table.merge(_partition(table, partition_id), now_us)

    def follow_children(self, table: str, children: Sequence[Partition]) -> None:
        """Give every tunnel that reads a table's log a channel for each new partition."""
        for tunnel in self.tunnels_of(table):
            if tunnel.type is not TunnelType.BaseData:
                for child in children:
                    tunnel.add(stream_channel(child, 0))

    # Tunnels

    def create_tunnel(
        self, table_name: str, name: str, tunnel_type: TunnelType, config: StreamConfig | None, now: float
    ) -> Tunnel:
        """Create a tunnel; its stream part starts at the log's end unless the configuration names an earlier start.

        Raises:
            Refusal: no such table, the name is taken or invalid, or the configuration contradicts itself.
        """
        table = self.tables.get(table_name)
        if table is None:
            raise parameter_invalid(f"[tunnelservice] table not exist: {table_name}")
        if not _TUNNEL_NAME.fullmatch(name):
            raise parameter_invalid(f"[tunnelservice] invalid tunnel name: '{name}'")
        if any(tunnel.name == name for tunnel in self.tunnels_of(table_name)):
            raise Refusal("OTSTunnelExist", f"[tunnelservice] tunnel already exist: {name}")
        now_us = int(now * 1_000_000)
        tunnel = Tunnel(
            TunnelId(str(uuid.uuid4())),
            name,
            tunnel_type,
            table_name,
            None if tunnel_type is TunnelType.BaseData else config or StreamConfig(),
            now_us * 1000,
            now + self.settings.init_delay,
        )
        if tunnel_type is not TunnelType.BaseData:
            hours = table.log.retention_hours if table.log is not None else self.settings.tunnel_retention_hours
            _check_config(tunnel.config or StreamConfig(), hours, now_us * 1000)
        if tunnel_type is not TunnelType.Stream:
            for channel in base_channels(table, self.settings):
                tunnel.add(channel)
        if tunnel_type is not TunnelType.BaseData:
            for channel in stream_channels(self._log_of(table, now_us), tunnel_type, tunnel.config, now_us):
                tunnel.add(channel)
        self.tunnels[tunnel.id] = tunnel
        return tunnel

    def tunnel(self, tunnel_id: str) -> Tunnel:
        """Return a tunnel.

        Raises:
            Refusal: no tunnel has this id.
        """
        tunnel = self.tunnels.get(TunnelId(tunnel_id))
        if tunnel is None:
            raise tunnel_missing()
        self.journal.tunnel_touched(tunnel)
        return tunnel

    def channel(self, tunnel_id: str, channel_id: str) -> tuple[Tunnel, TunnelChannel]:
        """Return a channel and its tunnel; the caller changes nothing else of the tunnel.

        Raises:
            Refusal: no tunnel or channel has these ids.
        """
        tunnel = self.tunnels.get(TunnelId(tunnel_id))
        if tunnel is None:
            raise tunnel_missing()
        channel = tunnel.channel(channel_id)
        self.journal.channel_touched(tunnel, channel)
        return tunnel, channel

    def find_tunnel(self, table_name: str, name: str, tunnel_id: str) -> Tunnel:
        """Return a tunnel by id, or by table and name if the id is empty.

        Raises:
            Refusal: there is none.
        """
        if tunnel_id:
            return self.tunnel(tunnel_id)
        for tunnel in self.tunnels_of(table_name):
            if tunnel.name == name:
                return tunnel
        raise tunnel_missing()

    def tunnels_of(self, table_name: str) -> list[Tunnel]:
        """Return the tunnels of a table; a table that is missing has none."""
        found = [tunnel for tunnel in self.tunnels.values() if tunnel.table_name == table_name]
        for tunnel in found:
            self.journal.tunnel_touched(tunnel)
        return found

    def every_tunnel(self) -> list[Tunnel]:
        """Return the tunnels of all tables."""
        for tunnel in self.tunnels.values():
            self.journal.tunnel_touched(tunnel)
        return list(self.tunnels.values())

    def _log_of(self, table: Table, now_us: int) -> ChangeLog:
        return table.log or table.enable_stream(self.settings.tunnel_retention_hours, now_us)


def _partition(table: Table, partition_id: str | None) -> Partition | None:
    if table.log is None or partition_id is None:
        return None
    partition = table.log.partitions.get(partition_id)
    if partition is None:
        raise parameter_invalid(f"table {table.name!r} has no partition {partition_id!r}")
    return partition


def _check_config(config: StreamConfig, hours: int, now_ns: int) -> None:
    start, end = config.start_offset_ns, config.end_offset_ns
    if end >= _OFFSET_LIMIT:
        raise parameter_invalid(f"[tunnelservice] end offset {end} is not within [0, 2^63)")
    if end and end < start:
        raise parameter_invalid(f"[tunnelservice] end offset {end} is before start offset {start}")
    if start and not now_ns - hours * _HOUR_NS + _START_MARGIN_NS <= start <= now_ns:
        raise parameter_invalid(f"[tunnelservice] start offset {start} is not within the last {hours} hours")
