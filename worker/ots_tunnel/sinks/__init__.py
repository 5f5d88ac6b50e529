"""Where records go: one small interface, and the choice of its implementation.

A sink confirms a batch as a whole: `write` returns when every record of it is stored, and only then may a
checkpoint be written (design rule 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ots_tunnel.config import WorkerConfig
from ots_tunnel.errors import ConfigError
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.protocol.record import Record
from ots_tunnel.transport import Transport

__all__ = ["Batch", "Guard", "Sink", "open_sink"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one channel in commit order, usually one page."""

    channel_id: ChannelId
    channel_type: ChannelType
    records: Sequence[Record]

    def __repr__(self) -> str:
        return f"Batch({self.channel_type}, {len(self.records)} records)"


class Sink(Protocol):
    """Stores records at least once and in order per primary key.

    Calls of `write` for different channels may overlap; those of one channel follow each other.
    """

    async def open(self) -> None:
        """Connect and check that writing can begin.

        Raises:
            SinkRejected: the destination cannot take these records, such as a missing table.
        """
        ...

    async def write(self, batch: Batch, guard: Guard) -> None:
        """Store every record of `batch`; transient failures are tried again until they pass or we are cancelled.

        Raises:
            SinkRejected: records are refused for good.
            OwnershipLost: the guard forbids to send; records may be stored in part.
        """
        ...

    async def flush(self) -> None:
        """Return when nothing is held back."""
        ...

    async def close(self) -> None:
        """Release connections; no call follows."""
        ...


def open_sink(config: WorkerConfig, *, transport: Transport | None = None) -> Sink:
    """The sink that the document names, not yet opened.

    Args:
        config: the worker's document.
        transport: used for a destination table; None makes one that keeps connections alive.

    Raises:
        ConfigError: no sink is named.
    """
    # Each member is imported where it is chosen: a worker never loads the libraries of sinks it does not use.
    if config.sink.tablestore is not None:
        from ots_tunnel.sinks.tablestore import TablestoreSink

        return TablestoreSink.from_config(config, config.sink.tablestore, transport=transport)
    if config.sink.stdout is not None:
        from ots_tunnel.sinks.stdout import StdoutSink

        return StdoutSink()
    if config.sink.count is not None:
        from ots_tunnel.sinks.count import CountSink

        return CountSink()
    raise ConfigError("sink: exactly one member is needed, found none")
