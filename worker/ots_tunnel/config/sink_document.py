"""What a sink needs of a worker's document, whether that names a tunnel or a stream."""

from __future__ import annotations

from typing import Protocol

from ots_tunnel.config.base import CredentialsConfig
from ots_tunnel.config.delivery import DeliveryConfig
from ots_tunnel.config.sinks import SinkConfig


class SourceNames(Protocol):
    """What is read: its names, which files, messages and letters carry, and where it is."""

    @property
    def endpoint(self) -> str:
        """Endpoint of the instance."""
        ...

    @property
    def credentials(self) -> CredentialsConfig:
        """The AccessKey for the instance."""
        ...

    @property
    def instance(self) -> str:
        """Instance of the source table."""
        ...

    @property
    def table(self) -> str:
        """Source table."""
        ...

    @property
    def tunnel_name(self) -> str:
        """The tunnel, or the table of leases."""
        ...

    @property
    def tunnel_id(self) -> str:
        """Id of the tunnel, or the table of leases."""
        ...


class WriteSettings(Protocol):
    """The settings that concern writes."""

    @property
    def lanes_per_channel(self) -> int:
        """Parallel writers per channel."""
        ...

    @property
    def write_deadline(self) -> float:
        """D of docs/architecture.md rule 4, seconds."""
        ...


class SinkDocument(Protocol):
    """A document that names a sink."""

    @property
    def source(self) -> SourceNames:
        """What is read."""
        ...

    @property
    def sink(self) -> SinkConfig:
        """Where records go."""
        ...

    @property
    def client(self) -> WriteSettings:
        """How the worker behaves."""
        ...

    @property
    def delivery(self) -> DeliveryConfig:
        """Which records go there, and in which writes."""
        ...
