"""A Kafka topic as the sink: at least once, in order per key (docs/sinks.md).

The key of a message is the row's primary key, so all messages of a row are in one partition. A key has one message in
flight at a time: librdkafka gives up messages one by one, and a message that it still sends after it gave up an earlier
one of the same key would break the order.
"""

from __future__ import annotations

from ots_tunnel.sinks.kafka.sink import KafkaSink

__all__ = ["KafkaSink"]
