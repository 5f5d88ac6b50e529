"""A Kafka topic as the sink."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from ots_tunnel.config.base import ConfigModel, NonEmptyPath
from ots_tunnel.config.modelling import AfterValidator, Field, model_validator
from ots_tunnel.config.problems import Contradiction, NotAllowed
from ots_tunnel.config.words import Words


def _has_a_port(server: str) -> str:
    if not 1 <= int(server.rpartition(":")[2]) <= 65535:
        raise NotAllowed
    return server


BootstrapServer = Annotated[str, Field(pattern=r"^[^,\s/@]+:\d{1,5}$"), AfterValidator(_has_a_port), Words("host:port")]


class KafkaSaslConfig(ConfigModel):
    """Login of the worker at the brokers."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """SASL mechanism for the password."""
    directory: NonEmptyPath
    """Folder with the files `username` and `password`. They are read again when they change."""


class KafkaSinkConfig(ConfigModel):
    """An existing topic."""

    bootstrap_servers: tuple[BootstrapServer, ...] = Field(min_length=1)
    """Brokers for the first connection, each as host:port."""
    topic: Annotated[
        str,
        Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$"),
        Words("1 to 249 letters, digits, dots, underscores and hyphens"),
    ]
    """Topic of every record."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Protocol of the brokers' listener."""
    sasl: KafkaSaslConfig | None = None
    """Required with SASL_PLAINTEXT and SASL_SSL, refused otherwise."""
    ca_file: NonEmptyPath | None = None
    """PEM file with the certificate authorities of the brokers; None means those of the system."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"
    """Compression of batches of records."""
    timeout_seconds: float = Field(default=30, ge=1, le=300)
    """Seconds after which an unconfirmed record is sent again; at most D of docs/architecture.md rule 4."""

    @model_validator(mode="after")
    def _protocol_fits(self) -> Self:
        protocol = self.security_protocol
        if self.sasl is None and protocol.startswith("SASL_"):
            raise Contradiction("sasl", f"missing, securityProtocol {protocol} needs {{mechanism, directory}}")
        if self.sasl is not None and not protocol.startswith("SASL_"):
            raise Contradiction(
                "sasl", f"found with securityProtocol {protocol}, allowed is SASL_PLAINTEXT or SASL_SSL with it"
            )
        if self.ca_file is not None and not protocol.endswith("SSL"):
            raise Contradiction("caFile", f"found with securityProtocol {protocol}, allowed is SSL or SASL_SSL with it")
        return self
