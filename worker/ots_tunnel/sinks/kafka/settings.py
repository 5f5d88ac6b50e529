"""librdkafka's settings for a document; pure but for a look at the CA file."""

from __future__ import annotations

import ssl
from typing import Any

from ots_tunnel.config import KafkaSinkConfig
from ots_tunnel.errors import ConfigError

#: Bytes of messages that wait in the client, beside the worker's memory budget; producing waits beyond it.
QUEUE_BYTES = 32 << 20
#: Longest message that the client lets pass to the broker, whose topic has the final say. It has to fit the queue.
MESSAGE_BYTES = 30 << 20
#: librdkafka looks for messages whose time is over so many seconds apart.
SCAN_INTERVAL = 1.0


def delivery_timeout(timeout: float, deadline: float) -> float:
    """Seconds after which the client gives up on a message, so that none leaves later than D after it was produced.

    Args:
        timeout: the document's timeoutSeconds.
        deadline: D of the docs/architecture.md rule 4.
    """
    limit = min(timeout, deadline)
    return max(limit - SCAN_INTERVAL, limit / 2)


def producer_settings(config: KafkaSinkConfig, deadline: float) -> dict[str, Any]:
    """Settings of an idempotent producer, without the login.

    Raises:
        ConfigError: the CA file holds no certificates.
    """
    give_up = round(delivery_timeout(config.timeout_seconds, deadline) * 1000)
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(config.bootstrap_servers),
        "client.id": "ots-tunnel",
        "security.protocol": config.security_protocol,
        "enable.idempotence": True,
        "acks": "all",
        # A broker that does not lead yet refuses a partition's first request, and may take the second one, whose
        # sequence numbers it has nothing to compare with. The first one's repetition is then told as stored without
        # being so (confluentinc/librdkafka#4134).
        "max.in.flight.requests.per.connection": 1,
        "message.timeout.ms": give_up,
        "request.timeout.ms": give_up,
        # the Java client's choice: its producers and ours put a key into the same partition
        "partitioner": "murmur2_random",
        "compression.type": config.compression,
        # a hot key waits for every single confirmation, and the others come in portions anyway
        "linger.ms": 0,
        "message.max.bytes": MESSAGE_BYTES,
        "queue.buffering.max.kbytes": QUEUE_BYTES >> 10,
        "reconnect.backoff.max.ms": 2000,
        # we ask again before we believe that a topic is gone
        "topic.metadata.propagation.max.ms": 5000,
        "socket.keepalive.enable": True,
        # before a broker (600 s) or a balancer closes what is idle, which would look like trouble
        "connections.max.idle.ms": 240_000,
        # a topic that is missing has been forgotten or misspelt
        "allow.auto.create.topics": False,
        # only what the error callback does not tell, too
        "log_level": 2,
    }
    if config.ca_file is not None:
        _check_certificates(config)
        settings["ssl.ca.location"] = str(config.ca_file)
    if config.sasl is not None:
        settings["sasl.mechanism"] = config.sasl.mechanism
    return settings


def _check_certificates(config: KafkaSinkConfig) -> None:
    try:
        ssl.create_default_context(cafile=str(config.ca_file))
    except ssl.SSLError as error:
        raise ConfigError(f"sink.kafka.caFile: {config.ca_file}: allowed are certificates in PEM form") from error
    except OSError as error:
        raise ConfigError(f"sink.kafka.caFile: {config.ca_file}: {error.strerror}") from error
