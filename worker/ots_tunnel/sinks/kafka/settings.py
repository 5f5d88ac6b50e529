"""librdkafka's settings for a document; reads no file but the CA file."""

from __future__ import annotations

import ssl
from typing import Any

from ots_tunnel.config import KafkaSinkConfig
from ots_tunnel.errors import ConfigError
from ots_tunnel.sinks.kafka.login_refusals import ATTEMPT_SECONDS

#: Bytes of messages that wait in the client, outside of the worker's memory budget; producing waits for room.
QUEUE_BYTES = 32 << 20
#: Messages that wait there: librdkafka keeps about 1 KB beside each, which QUEUE_BYTES does not count. All their
#: reports may come at once, in one call that the event loop makes; each takes some 3 µs.
QUEUE_MESSAGES = 10_000
#: Longest message that the client sends; the topic's own limit decides. It has to fit into the queue.
MESSAGE_BYTES = 30 << 20
#: Seconds between librdkafka's scans for messages that have timed out.
SCAN_INTERVAL = 1.0


def delivery_timeout(timeout: float, deadline: float) -> float:
    """Seconds after which the client gives up a message, so that none leaves later than D after it was produced.

    Args:
        timeout: the document's timeoutSeconds.
        deadline: D of docs/architecture.md rule 4.
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
        # A broker that does not lead yet refuses a partition's first request and may accept the second one, whose
        # sequence numbers it cannot compare. It then reports the repeated first one as stored, which is not true
        # (confluentinc/librdkafka#4134). A second request may be ready all the same: see `places`.
        "max.in.flight.requests.per.connection": 1,
        "message.timeout.ms": give_up,
        "request.timeout.ms": give_up,
        # the Java client's default: both put a key into the same partition
        "partitioner": "murmur2_random",
        "compression.type": config.compression,
        # a hot key waits for every confirmation; the other messages arrive in portions anyway
        "linger.ms": 0,
        "message.max.bytes": MESSAGE_BYTES,
        "queue.buffering.max.kbytes": QUEUE_BYTES >> 10,
        "queue.buffering.max.messages": QUEUE_MESSAGES,
        "reconnect.backoff.max.ms": 2000,
        "socket.connection.setup.timeout.ms": round(ATTEMPT_SECONDS * 1000),
        # the sink itself checks again before it takes a topic as gone
        "topic.metadata.propagation.max.ms": 5000,
        "socket.keepalive.enable": True,
        # earlier than a broker (600 s) or a load balancer closes idle connections, which would be logged as errors
        "connections.max.idle.ms": 240_000,
        # a missing topic was forgotten or misspelt
        "allow.auto.create.topics": False,
        # critical messages only: the error callback reports the rest
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
