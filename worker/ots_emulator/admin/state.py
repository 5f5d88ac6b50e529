"""The state of the service as JSON values; consume points are Unix nanoseconds."""

from __future__ import annotations

from typing import Any

from ots_emulator.instance import Instance
from ots_emulator.service import Service
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.channel import TunnelChannel
from ots_emulator.tunnels.delivery import expire_by_clock
from ots_emulator.tunnels.tunnel import Tunnel
from ots_tunnel.model import FINISHED

Document = dict[str, Any]


def state_of(service: Service) -> Document:
    """Return the whole state as JSON values."""
    now = service.clock.now()
    return {
        "time": now,
        "calls": service.application.calls,
        "faults": len(service.faults.rules(now)),
        # What is shown is in memory. After a failed write it is ahead of what a restart brings back.
        "failure": service.failure,
        "instances": [_instance_state(instance, now) for instance in service.instances.values()],
    }


def _instance_state(instance: Instance, now: float) -> Document:
    return {
        "name": instance.name,
        "tables": [_table_state(table, now) for _, table in sorted(instance.tables.items())],
        "tunnels": [_tunnel_state(instance, tunnel, now) for tunnel in instance.tunnels.values()],
    }


def _table_state(table: Table, now: float) -> Document:
    table.expire(int(now * 1000))
    partitions: list[Document] = []
    if table.log is not None:
        for partition in table.log.partitions.values():
            is_open = partition.closed_us is None
            partitions.append(
                {
                    "id": partition.id,
                    "open": is_open,
                    "parents": list(partition.parents),
                    "rows": table.rows_of(partition) if is_open else 0,
                    "changes": partition.end,
                }
            )
    return {
        "name": table.name,
        "rows": len(table),
        "bytes": table.size_bytes,
        "stream": table.log is not None,
        "partitionCount": len(table.partition_starts()),
        "partitions": partitions,
    }


def _tunnel_state(instance: Instance, tunnel: Tunnel, now: float) -> Document:
    # As in DescribeTunnel.
    expire_by_clock(tunnel, instance.tables[tunnel.table_name], instance.settings, int(now * 1_000_000))
    tunnel.expire_clients(now)
    return {
        "id": tunnel.id,
        "name": tunnel.name,
        "table": tunnel.table_name,
        "type": tunnel.type.name,
        "stage": str(tunnel.stage(now)),
        "expired": tunnel.expired,
        "consumePoint": tunnel.consume_point_ns(),
        "clients": [
            {"id": client.id, "timeout": client.timeout, "silentFor": now - client.last_seen}
            for client in tunnel.clients.values()
        ],
        "channels": [_channel_state(channel) for channel in tunnel.channels.values()],
    }


def _channel_state(channel: TunnelChannel) -> Document:
    return {
        "id": channel.id,
        "type": str(channel.type),
        "status": channel.shown_status.name,
        "owner": channel.owner,
        "version": channel.version,
        "rows": channel.rows,
        "consumePoint": channel.consume_point_ns,
        "sequence": channel.sequence,
        "finished": channel.token == FINISHED,
        "parents": list(channel.parents),
        "suspended": channel.suspended,
    }
