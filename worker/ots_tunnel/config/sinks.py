"""Sections of the document that name a sink; `ots_tunnel.sinks.choice` has the implementation of each."""

from __future__ import annotations

from typing import Annotated, Any, Self

from ots_tunnel.config.base import ConfigModel, InstanceConfig, NonEmptyPath, TableName, WebUrl
from ots_tunnel.config.files import FilesSinkConfig
from ots_tunnel.config.kafka import KafkaSinkConfig
from ots_tunnel.config.modelling import BeforeValidator, Field, model_validator
from ots_tunnel.config.problems import Contradiction, NotAllowed, looks_secret
from ots_tunnel.config.words import Words


def _not_a_secret(path: Any) -> Any:
    if looks_secret(path):
        raise NotAllowed
    return path


class TablestoreSinkConfig(InstanceConfig):
    """A table that exists; the operator creates it where it is missing."""

    table: TableName
    """Destination table."""


class StdoutSinkConfig(ConfigModel):
    """JSON lines on standard output, to look at records."""


class CountSinkConfig(ConfigModel):
    """Counts records and drops them, to measure."""


class PythonSinkConfig(ConfigModel):
    """The user's own Python code."""

    factory: Annotated[
        str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"), Words("package.module:name of a processor factory")
    ]
    """`package.module:name` of a ProcessorFactory, or of a function without arguments that returns one."""


class HttpSinkConfig(ConfigModel):
    """A web service that accepts batches of CloudEvents."""

    url: WebUrl
    """Address to which batches are posted."""
    hmac_secret_file: Annotated[
        NonEmptyPath | None, BeforeValidator(_not_a_secret), Words("the path of a file that holds the secret")
    ] = None
    """File with the secret that signs every request (Standard Webhooks); read again when it changes."""
    ca_file: NonEmptyPath | None = None
    """File with certificate authorities of the service in PEM form, beside those of the system; read again when it
    changes."""
    timeout_seconds: float = Field(default=30, gt=0, le=300)
    """Seconds a request may take; at most D of docs/architecture.md rule 4."""

    @model_validator(mode="after")
    def _has_authorities_for_tls(self) -> Self:
        if self.ca_file is not None and not self.url.startswith("https:"):
            # the parameters of an address may hold keys of the service
            raise Contradiction("caFile", f"found with url {self.url.partition('?')[0]}, allowed is https:// with it")
        return self


#: Members of `SinkConfig` whose sink can refuse one record and take the next; `files` can where it has columns.
REFUSING_SINKS = ("tablestore", "http", "kafka")


class SinkConfig(ConfigModel):
    """The sink: exactly one member is given."""

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
            allowed = ", ".join(type(self).model_fields)
            empty = sorted(self.model_fields_set - set(given))
            hint = f" ({', '.join(empty)} without a value counts as none: write {{}})" if empty and not given else ""
            found = ", ".join(given) or "none"
            raise Contradiction("", f"found {found}{hint}, allowed is exactly one of {allowed}")
        return self

    @property
    def kind(self) -> str:
        """Name of the member that is given."""
        return next(name for name, section in self if section is not None)

    @property
    def refuses_records(self) -> bool:
        """Whether the sink can refuse one record and take the next."""
        return self.kind in REFUSING_SINKS or (self.files is not None and self.files.columns is not None)

    @property
    def section(self) -> ConfigModel:
        """The member that is given."""
        section: ConfigModel = getattr(self, self.kind)
        return section
