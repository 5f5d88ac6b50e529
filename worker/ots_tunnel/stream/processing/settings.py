"""Configuration of a `StreamWorker`: the vendor's `ClientConfig` and `StreamConfig` in one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Literal

from ots_tunnel.endpoint import check_place
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials
from ots_tunnel.stream.calls.client import PAGE_RECORDS
from ots_tunnel.stream.calls.lease_table_creation import READY_SECONDS
from ots_tunnel.stream.following.settings import FollowSettings
from ots_tunnel.stream.holding.settings import LeaseSettings

#: Settings in seconds.
_TIMES = (
    "lease_duration",
    "renew_interval",
    "take_interval",
    "parent_poll_interval",
    "sync_shard_interval",
    "table_ready_timeout",
)


@dataclass(frozen=True, slots=True)
class StreamWorkerConfig:
    """How a worker follows a table; several workers may share one. Times in seconds, defaults as in the Java library.

    Args:
        endpoint, instance, credentials: the instance of both tables.
        data_table: the table whose changes are read; its stream has to be on.
        status_table: the table of leases, which is created where it is missing, and serves nothing else. Workers with
            the same one share the shards.
        lease_duration: a worker whose leases stand still for longer has lost them; the same in all workers.
        renew_interval: between two renewals, at most a third of the duration.
        take_interval: between two looks for leases to take.
        parent_poll_interval: between two looks whether the parents of a shard are read.
        sync_shard_interval: between two looks for new and dropped shards.
        table_ready_timeout: within which a new table of leases has to answer.
        auto_steal_lease: whether leases are asked of workers that have more.
        max_records: of a page.
        gives_empty_pages: whether `process_records` is called with no records while a shard has nothing new.
        start: where reading begins if the stream has no lease yet: a time with a time zone; None begins with the oldest
            change that the stream keeps.
        on_possible_gap: `Stop` raises PossibleGap where changes may be missing because they were not read within the
            stream's retention; `Continue` logs them and goes on.
        on_processor_error: `Restart` lets another processor begin at the shard's checkpoint, after a pause; `Stop` ends
            the worker, as the Java library does.

    Raises:
        ConfigError: a value is out of its range; the message names it.
    """

    endpoint: str
    instance: str
    credentials: Credentials = field(repr=False)
    data_table: str
    status_table: str
    lease_duration: float = 20.0
    renew_interval: float = 6.0
    take_interval: float = 6.0
    parent_poll_interval: float = 5.0
    sync_shard_interval: float = 10.0
    table_ready_timeout: float = READY_SECONDS
    auto_steal_lease: bool = True
    max_records: int = PAGE_RECORDS
    gives_empty_pages: bool = True
    start: datetime | None = None
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"
    on_processor_error: Literal["Restart", "Stop"] = "Restart"

    def __post_init__(self) -> None:
        self._check_types()
        self._check_times()
        self._check_names()
        if self.max_records < 1:
            raise ConfigError(f"max_records: found {self.max_records}, allowed is 1 or more")
        if self.start is not None and self.start.tzinfo is None:
            raise ConfigError(f"start: found {self.start.isoformat()}, allowed is a time with a time zone")
        if self.on_possible_gap not in ("Stop", "Continue"):
            raise ConfigError(f"on_possible_gap: found {self.on_possible_gap!r}, allowed are 'Stop' and 'Continue'")
        if self.on_processor_error not in ("Restart", "Stop"):
            raise ConfigError(
                f"on_processor_error: found {self.on_processor_error!r}, allowed are 'Restart' and 'Stop'"
            )

    def _check_types(self) -> None:
        texts = ("endpoint", "instance", "data_table", "status_table")
        for names, allowed, kind in (
            (texts, (str,), "a text"),
            (_TIMES, (int, float), "a number of seconds"),
            (("max_records",), (int,), "an integer"),
            (("auto_steal_lease", "gives_empty_pages"), (bool,), "True or False"),
            (("start",), (datetime, type(None)), "a time with a time zone, or None"),
        ):
            for name in names:
                value = getattr(self, name)
                # a boolean is an int in Python
                if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
                    raise ConfigError(f"{name}: found {value!r}, allowed is {kind}")

    def _check_times(self) -> None:
        for name in _TIMES:
            if not 0 < getattr(self, name) < inf:  # not a number is neither
                raise ConfigError(f"{name}: found {getattr(self, name):g}, allowed is a number of seconds above 0")
        if self.renew_interval > self.lease_duration / 3:
            raise ConfigError(
                f"renew_interval: found {self.renew_interval:g}, allowed is at most a third of lease_duration, "
                f"{self.lease_duration / 3:g}: two renewals may fail before a lease is lost"
            )

    def _check_names(self) -> None:
        check_place(self.endpoint, self.instance)
        for name in ("data_table", "status_table"):
            if not getattr(self, name):
                raise ConfigError(f"{name}: found an empty text, allowed is the name of a table")
        if self.data_table == self.status_table:
            raise ConfigError(
                f"status_table: found {self.status_table!r}, which is data_table, allowed is another table"
            )

    def follow_settings(self) -> FollowSettings:
        """The times of one worker."""
        return FollowSettings(
            LeaseSettings(self.lease_duration, self.renew_interval, self.take_interval, self.auto_steal_lease),
            self.parent_poll_interval,
            self.sync_shard_interval,
            self.table_ready_timeout,
            None if self.start is None else int(self.start.timestamp() * 1_000_000),
            self.on_possible_gap == "Stop",
        )
