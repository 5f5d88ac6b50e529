"""The document of a worker that follows a table by its stream's shards and a table of leases, without a tunnel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from ots_tunnel.config.base import TableName, ZonedTime
from ots_tunnel.config.document_file import checked
from ots_tunnel.config.kind import is_of_tunnel
from ots_tunnel.config.modelling import Field, model_validator
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.words import Words
from ots_tunnel.config.worker_document import PaceConfig, SourceConfig, WorkerDocument
from ots_tunnel.errors import ConfigError
from ots_tunnel.fence import write_deadline


class StreamSourceConfig(SourceConfig):
    """The table to follow, and the table of leases in the same instance."""

    lease_table: TableName
    """Table of leases, created where it is missing. Workers with the same one share the shards, those of the vendor's
    Java library included. Nothing else may use it."""
    start_from: Literal["Earliest", "Latest"] = "Earliest"
    """Where reading begins if the stream has no lease yet: with the oldest change that it keeps, or with the worker's
    start."""
    start_time: ZonedTime | None = None
    """Time at which reading begins instead, if the stream has no lease yet; with a time zone."""
    end_time: ZonedTime | None = None
    """The worker stops at this time and writes no later records; with a time zone. None: it never stops."""

    @model_validator(mode="after")
    def _tables_differ(self) -> Self:
        if self.lease_table == self.table:
            raise Contradiction(
                "leaseTable", f"found {self.lease_table!r}, the source itself, allowed is another table"
            )
        return self

    @model_validator(mode="after")
    def _begins_once(self) -> Self:
        if self.start_time is not None and self.start_from == "Latest":
            raise Contradiction("startTime", "found with startFrom Latest, allowed is one of them")
        return self

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.end_time is not None and self.start_time is not None and self.end_time <= self.start_time:
            raise Contradiction(
                "endTime",
                f"found {self.end_time.isoformat()}, allowed is a time after startTime, {self.start_time.isoformat()}",
            )
        return self

    @property
    def tables(self) -> tuple[str, ...]:
        """See `SourceConfig.tables`."""
        return self.table, self.lease_table

    @property
    def tunnel_name(self) -> str:
        """The table of leases, where messages and metrics name a tunnel."""
        return self.lease_table

    @property
    def tunnel_id(self) -> str:
        """The table of leases, where files and letters name a tunnel."""
        return self.lease_table


class StreamClientConfig(PaceConfig):
    """Settings of the worker among those that share the leases; the defaults are those of the vendor's library."""

    worker_id: Annotated[str, Field(pattern=r"^\S*$"), Words("a name without spaces, or nothing")] = ""
    """Id of this worker, which no other running worker of the leases may have. Empty: host name, process and chance. A
    worker that starts again under its old id has its leases back at once, and reads on when its last writes are
    over."""
    worker_id_prefix: Annotated[str, Field(pattern=r"^\S*$"), Words("a name without spaces, or nothing")] = ""
    """Begin of the id that a worker makes for itself where workerId is empty; the operator knows its workers by it."""
    lease_duration_seconds: float = Field(default=20, gt=0)
    """A worker whose leases stand still for longer has lost them; the same in all workers."""
    renew_interval_seconds: float = Field(default=6, gt=0)
    """Seconds between renewals; at most a third of the duration."""
    take_interval_seconds: float = Field(default=6, gt=0)
    """Seconds between looks for leases to take."""
    parent_poll_interval_seconds: float = Field(default=5, gt=0)
    """Seconds between looks whether the parents of a shard are read."""
    sync_interval_seconds: float = Field(default=10, gt=0)
    """Seconds between looks for new and dropped shards."""
    steals_leases: bool = True
    """Whether leases are asked of workers that have more."""

    @model_validator(mode="after")
    def _renewals_may_fail(self) -> Self:
        if self.renew_interval_seconds > self.lease_duration_seconds / 3:
            raise Contradiction(
                "renewIntervalSeconds",
                f"found {self.renew_interval_seconds:g}, allowed is at most a third of leaseDurationSeconds, "
                f"{self.lease_duration_seconds / 3:g} (two renewals may fail before a lease is lost)",
            )
        return self

    @property
    def write_deadline(self) -> float:
        """D of docs/architecture.md rule 4: seconds that a write may take, and the margin of the fence."""
        return write_deadline(self.lease_duration_seconds, self.renew_interval_seconds)


class StreamDocument(WorkerDocument):
    """The whole document."""

    source: StreamSourceConfig
    client: StreamClientConfig = StreamClientConfig()


def load_stream_document(path: Path) -> StreamDocument:
    """Read and check the document of `ots-tunnel stream run`.

    Raises:
        ConfigError: see `load_document`; or it is the document of `ots-tunnel run`.
    """
    from ots_tunnel.config.yaml_file import read_yaml

    document = read_yaml(path)
    if is_of_tunnel(document):
        raise ConfigError(
            f"{path}: source.tunnelId: found without source.leaseTable, so it is the document of `ots-tunnel run`"
        )
    return checked(path, document, StreamDocument)
