"""The document of a query's driver: which tunnel it follows, and into which files.

Pure apart from `load_query_config`, and free of Spark, because whoever renders the document has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator

from ots_tunnel.config import ConfigModel, InstanceConfig
from ots_tunnel.config.allowed import Words
from ots_tunnel.config.base import Name, NonEmptyPath, TableName
from ots_tunnel.config.document_file import dump_document, load_document
from ots_tunnel.config.files import MOST_COLUMNS, OWN_COLUMNS, FileColumnConfig
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.query.spelling import spelled

#: Heartbeats that a timeout has to last for, as in the object.
INTERVALS_OF_TIMEOUT = 3


class QuerySource(InstanceConfig):
    """The tunnel that the query follows."""

    table: TableName
    """Source table."""
    tunnel: Name
    """Name of a tunnel of the table, which nothing else may consume."""


class QueryFilesConfig(ConfigModel):
    """A folder of files of changes, which Spark writes."""

    url: Annotated[str, Field(pattern=r"^file:///[^?#\s]+$"), Words("file:///path, without spaces, ? and #")]
    """file:///path of a folder that driver and executors share."""
    format: Literal["JsonLines", "Parquet"] = "JsonLines"
    """JsonLines: one JSON object per record. Parquet: the same, typed."""
    columns: Annotated[tuple[FileColumnConfig, ...], Field(min_length=1, max_length=MOST_COLUMNS)] | None = None
    """Attribute columns that have a column of their own in Parquet; empty means that all cells of a record are in one
    column. A record with a value of another type ends the query."""
    compression: Literal["none", "gzip", "zstd"] = "none"
    """Compression of whole files (JsonLines) or of their pages (Parquet). Spark has no zstd for JsonLines."""

    @model_validator(mode="after")
    def _compression_fits(self) -> Self:
        if self.compression == "zstd" and self.format == "JsonLines":
            raise Contradiction("compression", "found zstd with format JsonLines, allowed are none and gzip with it")
        return self

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        if self.columns is not None and self.format != "Parquet":
            raise Contradiction("columns", f"found with format {self.format}, allowed is Parquet with it")
        taken = {spelled(name): name for name in OWN_COLUMNS}
        for column in self.columns or ():
            if spelled(column.name) in taken:
                found = f"found {column.name!r} beside {taken[spelled(column.name)]!r}"
                raise Contradiction("columns", f"{found}, allowed are names that differ in more than case")
            taken[spelled(column.name)] = column.name
        return self


class QuerySink(ConfigModel):
    """Destination of the changes."""

    files: QueryFilesConfig


class QueryRecordConfig(ConfigModel):
    """The ConfigMap with the record of the query's progress."""

    namespace: Name
    """Namespace of the ConfigMap."""
    config_map: Name
    """Name of the ConfigMap, which has to exist."""
    label: Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]
    """Value of its label ots-tunnel.dev/tunnel-id; a ConfigMap with another one is not written."""


class QueryConfig(ConfigModel):
    """Document of `python -m ots_tunnel.spark.query.driver`."""

    source: QuerySource
    sink: QuerySink
    checkpoint_directory: NonEmptyPath
    """Folder in which Spark keeps how far the query is, on a volume that outlasts the driver; only the driver uses it.
    It belongs to this tunnel and this folder of files."""
    progress: QueryRecordConfig | None = None
    """Where the progress is recorded, in a pod; without it the log alone tells."""
    trigger_interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Seconds between the starts of two batches; a batch that takes longer is followed by the next one at once."""
    max_bytes_per_batch: Annotated[int, Field(ge=1 << 20, le=64 << 20)] = 16 << 20
    """Bytes of records in a batch; several times as much is taken of the driver's memory."""
    heartbeat_interval_seconds: Annotated[int, Field(ge=5)] = 10
    """Seconds between heartbeats of the tunnel's client; the service's minimum is 5."""
    heartbeat_timeout_seconds: Annotated[int, Field(ge=15)] = 30
    """After this time without a heartbeat the service gives the channels to other clients. At least 3 intervals."""
    on_possible_gap: Literal["Stop", "Continue"] = "Stop"
    """Changes that may be missing end the query, or are passed."""
    client_tag: (
        Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$"), Words("up to 64 letters, digits and dashes")] | None
    ) = None
    """What the ids of the tunnel's clients begin with, by which another program tells them from those of others."""

    @model_validator(mode="after")
    def _folder_is_absolute(self) -> Self:
        if not self.checkpoint_directory.is_absolute():
            # Spark and this program would each put another folder before it
            found = f"found {self.checkpoint_directory}"
            raise Contradiction("checkpointDirectory", f"{found}, allowed is an absolute path")
        return self

    @model_validator(mode="after")
    def _timeout_lasts(self) -> Self:
        if self.heartbeat_timeout_seconds < INTERVALS_OF_TIMEOUT * self.heartbeat_interval_seconds:
            raise Contradiction(
                "heartbeatTimeoutSeconds",
                f"found {self.heartbeat_timeout_seconds}, allowed is at least {INTERVALS_OF_TIMEOUT} times "
                f"heartbeatIntervalSeconds, {self.heartbeat_interval_seconds}",
            )
        return self


def files_folder(files: QueryFilesConfig) -> Path:
    """Path of the folder of files."""
    return Path(unquote(urlsplit(files.url).path))


def load_query_config(path: Path) -> QueryConfig:
    """Read and check the driver's document.

    Raises:
        ConfigError: see `load_document`.
    """
    return load_document(path, QueryConfig)


def dump_query_config(config: QueryConfig) -> str:
    """The document as YAML; equal configurations give equal text."""
    return dump_document(config)
