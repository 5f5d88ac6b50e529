"""A sink that keeps the records it confirmed, and a check of their order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks import Batch, Guard, Immediate


@dataclass
class RecordingSink(Immediate):
    """Keeps (key, number) of every record in the order of confirmation."""

    delay: float = 0
    gate: asyncio.Event | None = None
    error: Exception | None = None
    written: list[tuple[str, int]] = field(default_factory=list)
    by_channel: dict[str, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    writing: int = 0
    closed: bool = False
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None:
        return None

    async def write(self, batch: Batch, guard: Guard) -> None:
        guard.check()
        self.writing += 1
        self.arrived.set()
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.delay:
                await asyncio.sleep(self.delay)
            if self.error is not None:
                raise self.error
            rows = [(str(record.primary_key[0][1]), _number(record.columns)) for record in batch.records]
            self.written += rows
            self.by_channel[batch.channel_id] += rows
        finally:
            self.writing -= 1

    async def close(self) -> None:
        self.closed = True


def _number(columns: tuple[Column, ...]) -> int:
    (column,) = columns
    assert isinstance(column.value, int)
    return column.value


def check_order(rows: Iterable[tuple[str, int]]) -> None:
    """Per key, numbers never decrease."""
    last: dict[str, int] = {}
    for key, number in rows:
        assert number >= last.get(key, 0), f"{key}: {number} after {last[key]}"
        last[key] = number
