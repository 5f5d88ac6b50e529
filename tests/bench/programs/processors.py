"""Processors of our worker for the measurements: the loops of tests/oracle/go/touch.go in Python.

Each name is a factory for `sink.python.factory`. When a channel closes, the gathered numbers are printed
as one JSON line on standard output.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from ots_tunnel.processor import ChannelContext, SimpleProcessorFactory
from ots_tunnel.protocol.record import Record

TOUCHED_COLUMN = "amount"
#: Unix microseconds at which a row was sent.
SENT_COLUMN = "sent"

Process = Callable[[ChannelContext, Sequence[Record]], Awaitable[None]]


@dataclass
class Gathered:
    """Numbers that the callbacks gather for the line."""

    touched: int = 0
    sent: list[int] = field(default_factory=list)
    delayed: list[int] = field(default_factory=list)

    def line(self) -> str:
        return json.dumps({"touched": self.touched, "sent": self.sent, "delayed": self.delayed})


def column() -> SimpleProcessorFactory:
    """Reads one column of every record."""
    gathered = Gathered()

    async def process(context: ChannelContext, records: Sequence[Record]) -> None:
        touched = 0
        for record in records:
            found = record.column(TOUCHED_COLUMN)
            if found is not None and found.value is not None:
                touched += 1
        gathered.touched += touched

    return _factory(process, gathered)


def all_columns() -> SimpleProcessorFactory:
    """Reads every column of every record."""
    gathered = Gathered()

    async def process(context: ChannelContext, records: Sequence[Record]) -> None:
        touched = 0
        for record in records:
            for column in record.columns:
                if column.value is not None:
                    touched += 1
        gathered.touched += touched

    return _factory(process, gathered)


def latency() -> SimpleProcessorFactory:
    """Records the time at which each record was sent, and its delay in microseconds."""
    gathered = Gathered()

    async def process(context: ChannelContext, records: Sequence[Record]) -> None:
        now = time.time_ns() // 1000
        for record in records:
            found = record.column(SENT_COLUMN)
            assert found is not None
            assert isinstance(found.value, int)
            gathered.sent.append(found.value)
            gathered.delayed.append(now - found.value)

    return _factory(process, gathered)


def _factory(process: Process, gathered: Gathered) -> SimpleProcessorFactory:
    async def shutdown(context: ChannelContext) -> None:
        # All channels share the numbers: the first one to close prints them.
        print(gathered.line(), flush=True)
        gathered.touched, gathered.sent, gathered.delayed = 0, [], []

    return SimpleProcessorFactory(process, shutdown=shutdown)
