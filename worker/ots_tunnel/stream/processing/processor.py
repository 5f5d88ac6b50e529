"""What a user's code implements to process the changes of a table by shards, and what it gets.

The names are those of the vendor's Stream Client (`IRecordProcessor` and its inputs). Each method is a function or a
coroutine function. Functions run in a thread of their shard and may block; coroutines run in the worker's event loop
and must not. The calls for one shard never overlap.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ots_tunnel.protocol.record import Record

if TYPE_CHECKING:
    from ots_tunnel.stream.processing.checkpointer import RecordProcessorCheckpointer


class ShutdownReason(enum.Enum):
    """Why a processor is shut down, and whether it may store a checkpoint then."""

    ZOMBIE = "the lease was lost: another worker may process the shard, and no checkpoint can be stored"
    TERMINATE = "the shard was read to its end: a checkpoint has to be stored, or its children never start"
    STOLEN = "the lease is handed to another worker, which begins at the checkpoint: store one"
    PROCESS_DONE = "the processor has marked itself as done: the lease stays, the shard is not read further"
    PROCESS_RESTART = (
        "the processor has marked itself for a restart, or has raised: another one begins at the checkpoint"
    )


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """The shard of a processor.

    Args:
        parents: shards that were read before.
        lease_identifier: names this holding of the lease; another one after the lease was lost and taken again.
    """

    shard_id: str
    stream_id: str
    parents: frozenset[str] = frozenset()
    lease_identifier: str = ""


class ShutdownMarker:
    """What a processor asks for when it returns."""

    def __init__(self) -> None:
        self.is_done = False
        self.is_restart = False

    def __repr__(self) -> str:
        return f"ShutdownMarker(done={self.is_done}, restart={self.is_restart})"

    def mark_for_process_done(self) -> None:
        """Read this shard no further; the lease stays held, and a later owner reads on."""
        self.is_done = True

    def mark_for_process_restart(self) -> None:
        """Let a new processor begin at the stored checkpoint."""
        self.is_restart = True


@dataclass(frozen=True, slots=True)
class InitializationInput:
    """Before the first records of a shard.

    Args:
        initial_checkpoint: where reading begins: an iterator, or TRIM_HORIZON.
    """

    shard_info: ShardInfo
    initial_checkpoint: str = field(repr=False)
    checkpointer: RecordProcessorCheckpointer
    shutdown_marker: ShutdownMarker


@dataclass(frozen=True, slots=True)
class ProcessRecordsInput:
    """Records of one page, in commit order; empty where the shard has nothing new."""

    records: Sequence[Record] = field(repr=False)
    checkpointer: RecordProcessorCheckpointer
    shutdown_marker: ShutdownMarker


@dataclass(frozen=True, slots=True)
class ShutdownInput:
    """After the last records."""

    shutdown_reason: ShutdownReason
    checkpointer: RecordProcessorCheckpointer


class RecordProcessor(Protocol):
    """Processes the records of one shard."""

    def initialize(self, initialization_input: InitializationInput) -> Awaitable[None] | None:
        """Called once, before the first records."""
        ...

    def process_records(self, process_records_input: ProcessRecordsInput) -> Awaitable[None] | None:
        """Process records; call `checkpointer.checkpoint()` when they, and all before them, are done.

        Raises:
            Exception: the shard begins again at its stored checkpoint, with a new processor, after a pause.
        """
        ...

    def shutdown(self, shutdown_input: ShutdownInput) -> Awaitable[None] | None:
        """Called once, after the last `process_records` has returned."""
        ...


class RecordProcessorFactory(Protocol):
    """Makes the processors."""

    def create_processor(self) -> RecordProcessor | Awaitable[RecordProcessor]:
        """A processor for one shard.

        A function runs in the thread of the shard, a coroutine function in the event loop.
        """
        ...
