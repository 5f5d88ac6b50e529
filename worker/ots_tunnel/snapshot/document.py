"""What the operator and the snapshot's driver must agree on: the driver's document and the record of progress.

The operator renders the document into a ConfigMap and reads the record; the driver (`ots_tunnel.spark.driver`)
reads the document and writes the record. No I/O, no Spark: both sides import this.

The record is the ConfigMap `<name>-snapshot` (design: snapshot before stream, point 2):

    metadata.labels[PROGRESS_LABEL]   which copy is wanted: the tunnel's id, or the object's uid without a tunnel
    data["label"]                     which copy the items below are of; another than wanted: they count as nothing
    binaryData["splits.json.gz"]      the frozen split list (`ots_tunnel.snapshot.splits`)
    binaryData["done.bitmap"]         finished splits: split i is bit i % 8 of byte i // 8
    data["total"]                     number of splits
    data["done"]                      number of finished splits, for people; the bitmap is the truth
    data["updated"]                   time of this write by the driver's clock, ISO 8601
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from ots_tunnel.config import ConfigModel, DeliveryConfig, InstanceConfig, SinkConfig, describe
from ots_tunnel.config.yaml_file import read_yaml
from ots_tunnel.errors import CodecError, ConfigError

#: Label of the progress ConfigMap: the copy that is wanted.
PROGRESS_LABEL = "ots-tunnel.dev/tunnel-id"
SPLITS_KEY = "splits.json.gz"
DONE_KEY = "done.bitmap"


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


@dataclass(frozen=True, slots=True)
class SnapshotProgress:
    """How far a snapshot is.

    `total` is None until the split list is frozen: unknown, not 0. `updated` is the time of the driver's last
    write, seconds since 1970, None together with `total`.
    """

    label: str
    done: int
    total: int | None
    updated: float | None = None

    @property
    def complete(self) -> bool:
        """Every frozen split is recorded as done; the only proof there is."""
        return self.total is not None and self.done >= self.total


def read_progress(config_map: Mapping[str, Any]) -> SnapshotProgress:
    """Progress as the record says.

    Raises:
        CodecError: the record was damaged; names the key.
    """
    label = (config_map["metadata"].get("labels") or {}).get(PROGRESS_LABEL, "")
    data = config_map.get("data") or {}
    if data.get("label") != label or SPLITS_KEY not in (config_map.get("binaryData") or {}):
        return SnapshotProgress(label, 0, None)
    total = data.get("total", "")
    if not total.isdecimal() or int(total) < 1:
        raise CodecError(f"data.total: a number of splits was expected, found {total!r}")
    try:
        updated = datetime.fromisoformat(data.get("updated", "")).timestamp()
    except ValueError as error:
        raise CodecError(f"data.updated: a time was expected: {error}") from error
    done = len(done_splits(binary_item(config_map, DONE_KEY), int(total)))
    return SnapshotProgress(label, done, int(total), updated)


def binary_item(config_map: Mapping[str, Any], key: str) -> bytes:
    """One item of binaryData, empty where it is missing.

    Raises:
        CodecError: not Base64.
    """
    try:
        return base64.b64decode((config_map.get("binaryData") or {}).get(key, ""), validate=True)
    except binascii.Error as error:
        raise CodecError(f"binaryData.{key}: not base64: {error}") from error


def done_splits(bitmap: bytes, total: int) -> frozenset[int]:
    """Indexes set in the bitmap, below `total`; a bitmap that is too short has zeros at its end."""
    return frozenset(i for i in range(min(total, 8 * len(bitmap))) if bitmap[i // 8] >> (i % 8) & 1)


def done_bitmap(done: Iterable[int], total: int) -> bytes:
    """The bitmap of `done` for `total` splits."""
    bits = 0
    for index in done:
        bits |= 1 << index
    return bits.to_bytes((total + 7) // 8, "little")
