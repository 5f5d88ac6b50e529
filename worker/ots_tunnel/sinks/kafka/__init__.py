"""A Kafka topic as the sink: at least once, in order per key (docs/sinks.md).

A message's key is the row's primary key, so that all of a row are in one partition. A key has one message under way at
a time: librdkafka gives up on messages one by one, and one that is still sent after an earlier one of its key was
given up could not be taken back.
"""

from __future__ import annotations

from ots_tunnel.sinks.kafka.sink import KafkaSink

__all__ = ["KafkaSink"]
