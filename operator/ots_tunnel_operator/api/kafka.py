"""A Kafka topic as the sink of an object (docs/sinks.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, ObjectName, immutable, rule, rules
from ots_tunnel_operator.api.source import CertificateKey, SecretReference

#: host:port with a port from 1 to 65535; the host may be an address of IP version 6 in brackets.
BootstrapServer = Annotated[
    str,
    Field(
        max_length=300,
        pattern=r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):"
        r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$",
    ),
]


class LoginReference(SecretReference):
    """Reference to a Secret with a login, in the object's namespace."""

    name: ObjectName
    """Name of the Secret. Its keys are username and password."""


class KafkaSasl(ApiModel):
    """Login of the workers at the brokers."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """SASL mechanism for the password."""
    secret_ref: LoginReference
    """Secret with the login; workers read a changed Secret without a restart."""


class KafkaSink(ApiModel):
    """An existing topic."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.securityProtocol.startsWith('SASL_') == has(self.sasl)",
                "kafka.sasl is needed with kafka.securityProtocol SASL_PLAINTEXT or SASL_SSL and only with them",
                field=".sasl",
                found="'found securityProtocol ' + self.securityProtocol",
            ),
            rule(
                "!has(self.caRef) || self.securityProtocol.endsWith('SSL')",
                "kafka.caRef is only for kafka.securityProtocol SSL or SASL_SSL",
                field=".caRef",
                found="'found securityProtocol ' + self.securityProtocol",
            ),
        )
    )

    bootstrap_servers: Annotated[tuple[BootstrapServer, ...], Field(min_length=1, max_length=32)]
    """Brokers for the first connection, each as host:port. A change restarts the workers one by one."""
    topic: Annotated[
        str,
        Field(
            min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$", json_schema_extra=immutable("sink.kafka.topic")
        ),
    ]
    """Topic of every record. Immutable: another topic would get only what comes later."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Protocol of the brokers' listener."""
    sasl: KafkaSasl | None = None
    """Login at the brokers; needed with SASL_PLAINTEXT and SASL_SSL, refused otherwise."""
    ca_ref: CertificateKey | None = None
    """Certificate authorities of the brokers; absent means those of the image."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"
    """Compression of batches of records."""
    timeout_seconds: Annotated[int, Field(ge=1, le=300)] = 30
    """Seconds after which an unconfirmed record is sent again, but never later than a third of the difference of
    workers.heartbeatTimeoutSeconds and workers.heartbeatIntervalSeconds."""
