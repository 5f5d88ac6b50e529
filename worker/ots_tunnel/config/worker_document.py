"""What the documents of all workers have in common, whether they read a tunnel or a stream's shards."""

from __future__ import annotations

from typing import Literal, Self

from ots_tunnel.config.base import ConfigModel, InstanceConfig, Name, TableName
from ots_tunnel.config.delivery import DeliveryConfig
from ots_tunnel.config.modelling import Field, model_validator
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.sinks import REFUSING_SINKS, SinkConfig
from ots_tunnel.endpoint import table_identity


class SourceConfig(InstanceConfig):
    """The table that a worker reads."""

    table: TableName
    """Source table."""
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"
    """What to do where changes may be missing, because they were not read within the stream's retention. Stop: end with
    exit code 14. Continue: warn, count it, and go on."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the source that the worker reads, or keeps its state in."""
        return (self.table,)


class PaceConfig(ConfigModel):
    """Settings of a worker that do not depend on where its channels come from."""

    checkpoint_interval_seconds: float = Field(default=5, ge=0.1)
    """Shortest time between two checkpoints of a channel."""
    max_parallel_channels: int = Field(default=0, ge=0)
    """Channels read at the same time; 0 means all."""
    lanes_per_channel: int = Field(default=8, ge=1)
    """Parallel writers per channel; records of one key have one writer."""
    memory_budget_bytes: int = Field(default=268_435_456, ge=16_777_216)
    """Bytes of records in this worker's memory, raw and parsed; at the limit reading waits."""
    drain_seconds: float = Field(default=45, ge=1)
    """Longest time for a drain; less than the pod's termination grace period."""
    rate_limit_rows_per_second: int = Field(default=0, ge=0)
    """Rows read per second by this worker; 0 means no limit."""


class HttpConfig(ConfigModel):
    """Address of the server for metrics, health and the channel list."""

    host: Name = "127.0.0.1"
    """Address to listen on. The operator renders 0.0.0.0 for the pod's own network: every address, IPv6 included."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port; 0 selects a free one."""


class WorkerDocument(ConfigModel):
    """The document of a worker; `source` and `client` are those of its kind."""

    source: SourceConfig
    sink: SinkConfig
    client: PaceConfig
    delivery: DeliveryConfig = DeliveryConfig()
    http: HttpConfig = HttpConfig()

    @model_validator(mode="after")
    def _sink_can_refuse(self) -> Self:
        policy = self.delivery.on_permanent_error
        if policy != "Fail" and not self.sink.refuses_records:
            raise Contradiction(
                "delivery.onPermanentError",
                f"found {policy} with sink.{self.sink.kind}, which refuses no single record: allowed is Fail, one of "
                f"the sinks {', '.join(REFUSING_SINKS)}, or files with columns",
            )
        return self

    @model_validator(mode="after")
    def _letters_have_a_place_of_their_own(self) -> Self:
        files, letters = self.sink.files, self.delivery.dead_letter
        if files is not None and letters is not None and files.place == letters.files.place:
            raise Contradiction(
                "delivery.deadLetter.files.url",
                f"found {letters.files.url!r}, the place of sink.files: allowed is another one, because the files of "
                "each are replaced by those of the other",
            )
        return self

    @model_validator(mode="after")
    def _destination_is_not_the_source(self) -> Self:
        written, source = self.sink.tablestore, self.source
        if written is None:
            return self
        place = table_identity(written.endpoint, written.instance, written.table)
        if place in [table_identity(source.endpoint, source.instance, table) for table in source.tables]:
            raise Contradiction(
                "sink.tablestore.table",
                f"found {written.table!r}, the source itself: copying a table into itself never ends",
            )
        return self
