"""Comparable states of whole emulators, and copies of data directories as a crash leaves them."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

from ots_emulator import Clock, Emulator, Settings
from ots_emulator.durable.disk_journal import DiskJournal
from ots_emulator.tables.changelog import ChangeLog
from ots_emulator.tables.keys import BOTTOM_KEY, TOP_KEY
from ots_emulator.tables.partition import Partition
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.channel import BaseSlice, TunnelChannel
from ots_emulator.tunnels.tunnel import Tunnel

Picture = dict[str, Any]


def picture_of(emulator: Emulator) -> Picture:
    """Return everything that clients can see, and everything that their next calls depend on."""
    return {
        name: {
            "aims": instance.partition_aims,
            "tables": [_table(table) for table in instance.tables.values()],
            "tunnels": [_tunnel(tunnel) for tunnel in instance.tunnels.values()],
        }
        for name, instance in emulator.instances.items()
    }


def _table(table: Table) -> Picture:
    return {
        "name": table.name,
        "columns": table.schema.columns,
        "options": table.options,
        "created": table.created_us,
        "fixed": table.fixed,
        "aim": table.partition_aim,
        "auto": table.last_auto_increment,
        "bytes": table.size_bytes,
        "rows": [(key, bytes(row), table.single_versions(key)) for key, row in table.scan(BOTTOM_KEY, TOP_KEY, 0)],
        "starts": table.partition_starts(),
        "log": None if table.log is None else _log(table.log),
    }


def _log(log: ChangeLog) -> Picture:
    return {
        "id": log.stream_id,
        "hours": log.retention_hours,
        "enabled": log.enabled_us,
        "last": log.last_us,
        "open": [partition.id for partition in log.open_partitions],
        "partitions": [
            (
                *(partition.id, partition.start, partition.parents, partition.created_us, partition.closed_us),
                *(partition.base, partition.end),
                log.read(partition, partition.base, rows=10**9, size=10**12, end_us=None),
            )
            for partition in log.partitions.values()
        ],
    }


def _tunnel(tunnel: Tunnel) -> Picture:
    return {
        **{field.name: getattr(tunnel, field.name) for field in fields(Tunnel)},
        "channels": [_channel(channel) for channel in tunnel.channels.values()],
        "clients": [(client.id, client.timeout, client.last_seen) for client in tunnel.clients.values()],
    }


def _channel(channel: TunnelChannel) -> Picture:
    source = channel.source
    return {**{field.name: getattr(channel, field.name) for field in fields(TunnelChannel)}, "source": _source(source)}


def _source(source: BaseSlice | Partition) -> tuple[Any, ...]:
    if isinstance(source, BaseSlice):
        return source.start, source.end
    # An open partition is compared with its log. A closed one may have left the log.
    return source.id, source.closed_us, None if source.closed_us is None else source.end


def crashed(directory: Path) -> Path:
    """Copy a data directory in use; a kill at this moment would leave the same files."""
    copy = Path(tempfile.mkdtemp(prefix=f"{directory.name}-", dir=directory.parent))
    shutil.copytree(directory, copy, dirs_exist_ok=True)
    return copy


def reopened(directory: Path, settings: Settings, clock: Clock) -> Picture:
    """Return the state of an emulator that starts from a data directory."""
    emulator = Emulator(settings=settings, clock=clock, data=directory)
    try:
        return picture_of(emulator)
    finally:
        emulator.close()


def unkept(emulator: Emulator) -> list[Any]:
    """Return all changes since the last commit; after a call there must be none."""
    found: list[Any] = []
    for instance in emulator.instances.values():
        if isinstance(instance.journal, DiskJournal):
            instance.journal.everything_touched()
            batch = instance.journal.changes()
            found += [batch] if batch else []
    return found
