"""`ots-tunnel` without one of its safeguards; the chaos tests have to notice each missing one.

Usage: python -m tests.chaos.sabotage KIND ARGUMENTS OF OTS-TUNNEL
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ots_tunnel import cli, fence
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.worker.channel import pipeline
from ots_tunnel.worker.progress.checkpointer import Checkpointer


def without_fence() -> None:
    """A worker that was paused continues to write (docs/architecture.md rule 4)."""

    def check(self: object) -> None:
        return None

    fence.Fence.check = check
    fence.ChannelFence.check = check


def with_early_checkpoints() -> None:
    """A page counts as stored before the sink has written it (docs/architecture.md rule 1)."""
    write = pipeline.Pipeline._write

    async def confirm_first(self: pipeline.Pipeline, item: Any) -> Any:
        self._unconfirmed._on_confirmed(item)
        return await write(self, item)

    pipeline.Pipeline._write = confirm_first


def with_holes() -> None:
    """The last record of larger pages is left out."""
    write = TablestoreSink.write

    async def leave_out(self: TablestoreSink, batch: Any, guard: Any) -> None:
        records = batch.records[:-1] if len(batch.records) > 8 else batch.records
        await write(self, replace(batch, records=records), guard)

    TablestoreSink.write = leave_out


def without_order() -> None:
    """The records of a page are written from the last to the first."""
    write = TablestoreSink.write

    async def reverse(self: TablestoreSink, batch: Any, guard: Any) -> None:
        await write(self, replace(batch, records=batch.records[::-1]), guard)

    TablestoreSink.write = reverse


def without_last_checkpoint() -> None:
    """A channel is handed back or ended without its last checkpoint (docs/architecture.md rule 2)."""

    async def skip(self: Checkpointer, seconds: float, try_seconds: float | None = None) -> None:
        return None

    Checkpointer.flush_within = skip
    # else the last page's is stored by the loop that stores them meanwhile
    Checkpointer.hurry = lambda self: None


KINDS: dict[str, Callable[[], None]] = {
    kind.__name__: kind
    for kind in (without_fence, with_early_checkpoints, with_holes, without_order, without_last_checkpoint)
}

if __name__ == "__main__":
    KINDS[sys.argv.pop(1)]()
    cli.main()
