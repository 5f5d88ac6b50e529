"""The settings of a worker of shards, from its document."""

from __future__ import annotations

import os
import secrets
import socket
import time

from ots_tunnel.config import StreamDocument, StreamSourceConfig
from ots_tunnel.model import TunnelId
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.worker.settings import WorkerSettings


def worker_settings(document: StreamDocument) -> WorkerSettings:
    """What the worker has in common with that of a tunnel; the table of leases is shown as the tunnel."""
    source, client = document.source, document.client
    return WorkerSettings(
        tunnel_id=TunnelId(source.lease_table),
        table=source.table,
        tunnel_name=source.lease_table,
        client_tag=client.worker_id or new_worker_id(client.worker_id_prefix),
        interval=client.renew_interval_seconds,
        timeout=client.lease_duration_seconds,
        checkpoint_interval=client.checkpoint_interval_seconds,
        drain=client.drain_seconds,
        memory_budget_bytes=client.memory_budget_bytes,
        max_parallel_channels=client.max_parallel_channels,
        rows_per_second=client.rate_limit_rows_per_second,
        on_possible_gap=source.on_possible_gap,
        end_us=None if source.end_time is None else int(source.end_time.timestamp() * 1_000_000),
    )


def follow_settings(document: StreamDocument) -> FollowSettings:
    """Times of the rounds, and where reading begins."""
    source, client = document.source, document.client
    return FollowSettings(
        LeaseSettings(
            client.lease_duration_seconds,
            client.renew_interval_seconds,
            client.take_interval_seconds,
            client.steals_leases,
        ),
        client.parent_poll_interval_seconds,
        client.sync_interval_seconds,
        start_us=start_of(source),
        starts_anew=source.start_time is None,
        stops_at_gaps=source.on_possible_gap == "Stop",
    )


def new_worker_id(prefix: str = "") -> str:
    """An id that no other worker has: host, process and chance, since a pod's process has always the same number."""
    parts = (prefix, socket.gethostname(), str(os.getpid()), secrets.token_hex(4))
    return "-".join(part for part in parts if part)


def start_of(source: StreamSourceConfig) -> int | None:
    """Unix microseconds at which reading begins; None begins with the oldest change."""
    if source.start_time is not None:
        return int(source.start_time.timestamp() * 1_000_000)
    return int(time.time() * 1_000_000) if source.start_from == "Latest" else None
