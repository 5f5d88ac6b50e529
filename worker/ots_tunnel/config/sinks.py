"""Where records go."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from ots_tunnel.config.base import ConfigModel, InstanceConfig
from ots_tunnel.config.files import FilesSinkConfig
from ots_tunnel.config.kafka import KafkaSinkConfig


class TablestoreSinkConfig(InstanceConfig):
    """Another table; it exists already (the operator ensures it)."""

    table: str = Field(min_length=1)
    """Destination table."""


class StdoutSinkConfig(ConfigModel):
    """JSON lines on standard output, for looking."""


class CountSinkConfig(ConfigModel):
    """Counts and forgets; for measuring."""


class PythonSinkConfig(ConfigModel):
    """The user's own code."""

    factory: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """`package.module:name` of a ProcessorFactory, or of a function without arguments that returns one."""


class HttpSinkConfig(ConfigModel):
    """A web service that takes batches of CloudEvents."""

    url: str = Field(pattern=r"^https?://[^\s]+$")
    """Where batches are posted."""
    hmac_secret_file: Path | None = None
    """File with the secret that signs every request (Standard Webhooks); read again when it changes."""
    timeout_seconds: float = Field(default=30, gt=0, le=300)
    """Time a request may take."""


class SinkConfig(ConfigModel):
    """Exactly one member."""

    tablestore: TablestoreSinkConfig | None = None
    files: FilesSinkConfig | None = None
    http: HttpSinkConfig | None = None
    kafka: KafkaSinkConfig | None = None
    python: PythonSinkConfig | None = None
    stdout: StdoutSinkConfig | None = None
    count: CountSinkConfig | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one sink is needed, found {given or 'none'}")
        return self

    @property
    def kind(self) -> str:
        """Name of the member that is given."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)
