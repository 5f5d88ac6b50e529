"""The document of a snapshot's driver: the operator renders it into a ConfigMap, the driver reads it.

Pure apart from `load_snapshot_config`, and free of Spark, because operator and driver both import it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import yaml
from pydantic import Field, ValidationError, model_validator

from ots_tunnel.config import ConfigModel, DeliveryConfig, InstanceConfig, SinkConfig, describe
from ots_tunnel.config.yaml_file import read_yaml
from ots_tunnel.errors import ConfigError


class SnapshotSource(InstanceConfig):
    """The table that is read."""

    table: str = Field(min_length=1)
    """Source table."""


class ProgressConfig(ConfigModel):
    """Where the driver keeps the split list and what is done of it."""

    namespace: str = Field(min_length=1)
    """Namespace of the ConfigMap: the object's own."""
    config_map: str = Field(min_length=1)
    """Name of the ConfigMap."""
    label: str = Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")
    """Which copy this is: a driver goes on with a record of this label and replaces any other."""


class SplitsConfig(ConfigModel):
    """How the table is cut into tasks."""

    bytes_per_split: int = Field(default=16_777_216, ge=1_048_576)
    """Size of a split as the service estimates it; 1048576 is the service's minimum. Bigger where the table
    would make more than 4000 splits."""
    deadline_seconds: float = Field(default=600, ge=10)
    """A task sends nothing later than this after its start, less the write deadline; then it is retried."""


class SnapshotConfig(ConfigModel):
    """The whole document of `python -m ots_tunnel.spark.driver`."""

    source: SnapshotSource
    sink: SinkConfig
    progress: ProgressConfig
    splits: SplitsConfig = SplitsConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    write_deadline_seconds: float = Field(default=20, ge=1)
    """D of the docs/architecture.md rule 4: seconds one write may take."""

    @model_validator(mode="after")
    def _sink_is_a_table_elsewhere(self) -> Self:
        sink = self.sink.tablestore
        if sink is None:
            raise ValueError("sink.tablestore is needed: a snapshot writes to a table only")
        if (sink.endpoint.rstrip("/"), sink.instance, sink.table) == (
            self.source.endpoint.rstrip("/"),
            self.source.instance,
            self.source.table,
        ):
            raise ValueError(f"sink.tablestore.table {sink.table!r} is the source itself")
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
        ConfigError: the file is missing, no YAML, or a field is wrong; each wrong field is named.
    """
    try:
        return SnapshotConfig.model_validate(read_yaml(path), by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError(f"{path}: {describe(error, SnapshotConfig)}") from error


def dump_snapshot_config(config: SnapshotConfig) -> str:
    """The document as YAML, as the operator puts it into a ConfigMap; stable for equal configurations."""
    return yaml.safe_dump(config.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True)
