"""The document of a snapshot's driver: the operator renders it into a ConfigMap, the driver reads it.

Pure apart from `load_snapshot_config`, and free of Spark, because operator and driver both import it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from ots_tunnel.config import ConfigModel, DeliveryConfig, InstanceConfig, SinkConfig
from ots_tunnel.config.document_file import dump_document, load_document
from ots_tunnel.endpoint import table_identity


class SnapshotSource(InstanceConfig):
    """The source table and its instance."""

    table: str = Field(min_length=1)
    """Source table."""


class ProgressConfig(ConfigModel):
    """The ConfigMap of the progress record."""

    namespace: str = Field(min_length=1)
    """Namespace of the ConfigMap, which is that of the TablestoreTunnel."""
    config_map: str = Field(min_length=1)
    """Name of the ConfigMap."""
    label: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")
    """Identity of this copy: a driver resumes a record with this label and replaces a record with another one."""


class SplitsConfig(ConfigModel):
    """How the table is cut into tasks."""

    bytes_per_split: int = Field(default=16_777_216, ge=1_048_576)
    """Size of a split by the service's estimate; 1048576 is the service's minimum. Splits are larger if the table
    would have more than 4000, or 20000 of more than 256 MiB."""
    deadline_seconds: float = Field(default=600, ge=10)
    """Seconds after its start when the last write of a task must be over; an older task fails and is retried."""


class SnapshotConfig(ConfigModel):
    """Document of `python -m ots_tunnel.spark.snapshot.driver`."""

    source: SnapshotSource
    sink: SinkConfig
    progress: ProgressConfig
    splits: SplitsConfig = SplitsConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    write_deadline_seconds: float = Field(default=20, ge=1)
    """D of docs/architecture.md rule 4: seconds that one write may take."""

    @model_validator(mode="after")
    def _sink_is_a_table_elsewhere(self) -> Self:
        sink = self.sink.tablestore
        if sink is None:
            raise ValueError("sink.tablestore is needed: a snapshot writes only to a table")
        if table_identity(sink.endpoint, sink.instance, sink.table) == table_identity(
            self.source.endpoint, self.source.instance, self.source.table
        ):
            raise ValueError(
                f"sink.tablestore.table {sink.table!r} is the source itself: copying a table into itself never ends"
            )
        return self

    @model_validator(mode="after")
    def _deadline_leaves_time(self) -> Self:
        if self.splits.deadline_seconds < 2 * self.write_deadline_seconds:
            raise ValueError(
                f"splits.deadlineSeconds {self.splits.deadline_seconds:g} must be at least twice "
                f"writeDeadlineSeconds {self.write_deadline_seconds:g}"
            )
        return self


def load_snapshot_config(path: Path) -> SnapshotConfig:
    """Read and check the driver's document.

    Raises:
        ConfigError: see `load_document`.
    """
    return load_document(path, SnapshotConfig)


def dump_snapshot_config(config: SnapshotConfig) -> str:
    """The document as YAML for the operator's ConfigMap; equal configurations give equal text."""
    return dump_document(config)
