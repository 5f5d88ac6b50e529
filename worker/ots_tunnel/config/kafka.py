"""A Kafka topic as the sink."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ots_tunnel.config.base import ConfigModel


class KafkaSaslConfig(ConfigModel):
    """How the worker logs in at the brokers."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """How the password is shown to a broker."""
    directory: Path
    """Folder with the files `username` and `password`. They are read again when they change."""


class KafkaSinkConfig(ConfigModel):
    """A topic; it exists already."""

    bootstrap_servers: tuple[Annotated[str, Field(pattern=r"^[^,\s/]+:\d{1,5}$")], ...] = Field(min_length=1)
    """Brokers to begin with, each as host:port."""
    topic: str = Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")
    """Topic of every record."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """What the brokers' listener speaks."""
    sasl: KafkaSaslConfig | None = None
    """Needed with SASL_PLAINTEXT and SASL_SSL, refused without."""
    ca_file: Path | None = None
    """PEM file with the certificates that the brokers' have to descend from; None means the system's."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"
    """How batches of records are compressed."""
    timeout_seconds: float = Field(default=30, ge=1, le=300)
    """Time after which a record without confirmation is sent again; never more than D of the design's rule 4."""

    @model_validator(mode="after")
    def _protocol_fits(self) -> Self:
        protocol = self.security_protocol
        if self.sasl is None and protocol.startswith("SASL_"):
            raise ValueError(f"sasl is missing, securityProtocol {protocol} needs it")
        if self.sasl is not None and not protocol.startswith("SASL_"):
            raise ValueError(
                f"sasl contradicts securityProtocol {protocol}: allowed with it are SASL_PLAINTEXT and SASL_SSL"
            )
        if self.ca_file is not None and not protocol.endswith("SSL"):
            raise ValueError(f"caFile contradicts securityProtocol {protocol}: allowed with it are SSL and SASL_SSL")
        return self
