"""The whole document of a worker."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import yaml
from pydantic import Field, ValidationError, model_validator

from ots_tunnel.config.base import ConfigModel, Name
from ots_tunnel.config.client import ClientConfig, TunnelConfig
from ots_tunnel.config.delivery import DeliveryConfig
from ots_tunnel.config.problems import Contradiction, describe
from ots_tunnel.config.sinks import REFUSING_SINKS, SinkConfig
from ots_tunnel.config.yaml_file import read_yaml
from ots_tunnel.endpoint import table_identity
from ots_tunnel.errors import ConfigError


class HttpConfig(ConfigModel):
    """Address of the server for metrics, health and the channel list."""

    host: Name = "127.0.0.1"
    """Address to listen on. The operator renders 0.0.0.0 for the pod's own network: every address, IPv6 included."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port; 0 selects a free one."""


class WorkerConfig(ConfigModel):
    """The whole document."""

    source: TunnelConfig
    sink: SinkConfig
    client: ClientConfig = ClientConfig()
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
    def _destination_is_not_the_source(self) -> Self:
        sink, source = self.sink.tablestore, self.source
        if sink is not None and table_identity(sink.endpoint, sink.instance, sink.table) == table_identity(
            source.endpoint, source.instance, source.table
        ):
            raise Contradiction(
                "sink.tablestore.table",
                f"found {sink.table!r}, the source itself: copying a table into itself never ends",
            )
        return self


def load_config(path: Path) -> WorkerConfig:
    """Read and check a worker document.

    Raises:
        ConfigError: the file is missing or not YAML, or fields are wrong; names each wrong field with the value found
            and the values allowed.
    """
    document = read_yaml(path)
    try:
        return WorkerConfig.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError(f"{path}: {describe(error, WorkerConfig)}") from error


def dump_config(config: WorkerConfig) -> str:
    """The document as YAML for the operator's ConfigMap; equal configurations give equal text."""
    return yaml.safe_dump(config.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True)
