"""The document of a query's driver: which tunnel it follows, and into which files or table of a lake.

Pure apart from `load_query_config`, and free of Spark, because whoever renders the document has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ots_tunnel.config import ConfigModel, InstanceConfig
from ots_tunnel.config.base import Name, NonEmptyPath, TableName
from ots_tunnel.config.document_file import dump_document, load_document
from ots_tunnel.config.problems import Contradiction
from ots_tunnel.config.words import Words
from ots_tunnel.query.files import QueryFilesConfig

#: Heartbeats that a timeout has to last for, as in the object.
INTERVALS_OF_TIMEOUT = 3


class QuerySource(InstanceConfig):
    """The tunnel that the query follows."""

    table: TableName
    """Source table."""
    tunnel: Name
    """Name of a tunnel of the table, which nothing else may consume."""


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


def load_query_config(path: Path) -> QueryConfig:
    """Read and check the driver's document.

    Raises:
        ConfigError: see `load_document`.
    """
    return load_document(path, QueryConfig)


def dump_query_config(config: QueryConfig) -> str:
    """The document as YAML; equal configurations give equal text."""
    return dump_document(config)
