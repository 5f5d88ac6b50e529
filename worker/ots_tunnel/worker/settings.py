"""Settings of a worker, derived from the worker's document; tests make their own with short times."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Literal

from ots_tunnel.config import WorkerConfig
from ots_tunnel.fence import write_deadline
from ots_tunnel.model import TunnelId


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Settings of one worker; times in seconds.

    Args:
        interval: between two heartbeats.
        timeout: heartbeat timeout that the service keeps, whole seconds, 1 or more.
        drain: limit of a drain, after which the session ends anyway.
        max_parallel_channels: channels that read and write at the same time; 0 means all.
        rows_per_second: rows read per second; 0 means no limit.
        early_spacing: least time between two heartbeats when a channel has something to report.
        reconnect: bounds of the random pause before a new client connects. Shorter than the vendor's 1 to 10: our
            Shutdown call, or the timeout, has freed the old client's channels by then, so waiting only adds lag.
        exit_when_complete: end when every channel of the tunnel is terminated or has reached the end time.
        end_us: Unix microseconds after which nothing of the stream is written; None follows without end.
        on_possible_gap: what to do where changes may be missing, see `gaps.guard`.
        read_mark: Unix seconds at which every channel of the tunnel had been read to its end; None is unknown.
    """

    tunnel_id: TunnelId
    table: str = ""
    tunnel_name: str = ""
    client_tag: str = ""
    interval: float = 10
    timeout: float = 60
    checkpoint_interval: float = 5
    drain: float = 45
    memory_budget_bytes: int = 268_435_456
    max_parallel_channels: int = 0
    rows_per_second: int = 0
    early_spacing: float = 1
    reconnect: tuple[float, float] = (1, 3)
    exit_when_complete: bool = False
    end_us: int | None = None
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"
    read_mark: float | None = None

    @property
    def write_deadline(self) -> float:
        """D, the seconds within which a write takes effect (docs/architecture.md rule 4)."""
        return write_deadline(self.timeout, self.interval)

    @property
    def abandon_after(self) -> float:
        """Seconds after the order to drain when an unfinished write is abandoned.

        The rest of the drain is for the write's doubt (D), and a tenth of it for storing the checkpoint and handing
        the channel back. A write has at least half of the drain.
        """
        return max(0.9 * self.drain - self.write_deadline, self.drain / 2)

    @classmethod
    def of(cls, config: WorkerConfig, *, exit_when_complete: bool = False) -> WorkerSettings:
        """The settings of a document; the client tag is its prefix and the host's name."""
        client, end = config.client, config.source.end_time
        parts = (part for part in (client.tag_prefix, socket.gethostname()) if part)
        return cls(
            tunnel_id=TunnelId(config.source.tunnel_id),
            table=config.source.table,
            tunnel_name=config.source.tunnel_name,
            client_tag="-".join(parts),
            interval=client.heartbeat_interval_seconds,
            timeout=client.heartbeat_timeout_seconds,
            checkpoint_interval=client.checkpoint_interval_seconds,
            drain=client.drain_seconds,
            memory_budget_bytes=client.memory_budget_bytes,
            max_parallel_channels=client.max_parallel_channels,
            rows_per_second=client.rate_limit_rows_per_second,
            exit_when_complete=exit_when_complete,
            end_us=None if end is None else int(end.timestamp() * 1_000_000),
            on_possible_gap=config.source.on_possible_gap,
            read_mark=read_mark_of(config),
        )


def read_mark_of(config: WorkerConfig) -> float | None:
    """The read mark of a document, Unix seconds; None without one."""
    mark = config.source.read_until
    return None if mark is None else mark.timestamp()
