"""What the works of one worker share."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ots_tunnel.errors import TunnelError
from ots_tunnel.sinks.python.sink import end_process
from ots_tunnel.stream.processing.processor import RecordProcessorFactory
from ots_tunnel.stream.shards import ShardId


@dataclass(frozen=True, slots=True)
class ProcessorParts:
    """What the works of one worker share.

    Args:
        gives_empty_pages: whether pages without records are given.
        restarts: whether a processor that raised is followed by another one; otherwise its error ends the worker.
        end_worker: called with an error that another processor cannot fix.
        on_failure: called with the shard and the error that stopped it, and with None when it has moved again.
        on_hang: called with the shard when a call does not return although it has to.
        entropy: replaced in tests.
    """

    factory: RecordProcessorFactory
    gives_empty_pages: bool
    restarts: bool
    end_worker: Callable[[TunnelError], None]
    on_failure: Callable[[ShardId, TunnelError | None], None]
    on_hang: Callable[[str], None] = end_process
    entropy: Callable[[], float] = field(default=random.random)
