"""Moves pages of one kind into one sink, and prints its highest memory and the longest time between two loop rounds.

`mapped` is what of the memory the kernel maps from files, libraries nearly all of it: that is shared with other
processes, is dropped under pressure, and differs by 15 MB between kernels for the same program.
`longest` is by the clock; `busiest` leaves out what other processes took of the time.

python -m tests.support.programs.page_program '{"sink": {...}, "kind": "narrow", "budget": 67108864, ...}'
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from ots_tunnel.allocator import keep_freed_memory
from ots_tunnel.client.page import Page
from ots_tunnel.model import FINISHED, Action, ChannelId, ChannelType, SequenceInfo, Token
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.page import read_page
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.rate import RateLimit
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.transport import BeforeAnswer
from ots_tunnel.worker.channel.pipeline import Pipeline
from ots_tunnel.worker.channel.read_ahead import ChannelStart, ReadAhead
from ots_tunnel.worker.context import WorkerContext
from ots_tunnel.worker.pages.budget import LEAST_PAGE_BYTES, ByteBudget
from ots_tunnel.worker.pages.read_page import ReadPage
from ots_tunnel.worker.status.metrics import WorkerMetrics
from tests.support.guards import open_fence
from tests.support.sink_kit import document_of

PAGE_BYTES = 4 << 20
#: The cells of a row, by the kind of page: many rows of one small cell, many small cells in a row, one large cell.
KINDS: dict[str, tuple[Column, ...]] = {
    "narrow": (Column("v", 1, 1_700_000_000_000),),
    "wide": tuple(Column(f"c{number}", True, 1_700_000_000_000) for number in range(500)),
    "large": (Column("text", "x" * (2 << 20), 1_700_000_000_000),),
}


def body_of(kind: str) -> bytes:
    """A page of 4 MiB, without its token."""
    answer, number = bytearray(), 0
    while len(answer) < PAGE_BYTES:
        part = tunnel_pb2.ReadRecordsResponse(next_token="")
        sequence = SequenceInfo(1, 1_700_000_000_000_000 + number, 0)
        row = encode_row((("pk", f"key{number:08}"),), KINDS[kind], sequence=sequence)
        part.records.add(action_type=int(Action.PUT), record=row)
        answer += part.SerializePartialToString()[:-2]  # without the empty token
        number += 1
    return bytes(answer)


class Pages:
    """The pages of one channel."""

    def __init__(self, body: bytes, count: int) -> None:
        self._body = body
        self._left = count

    async def read(self, token: Token, before_answer: BeforeAnswer) -> Page:
        """The next page, in bytes of its own."""
        self._left -= 1
        following = f"t{self._left}" if self._left else FINISHED
        body = self._body + tunnel_pb2.ReadRecordsResponse(next_token=following).SerializePartialToString()
        await asyncio.sleep(0.002)
        await before_answer()
        content = read_page(body)
        return Page(content.records, content.next_token, True, len(body), 1.0)


class Destination:
    """The section of a document."""

    def __init__(self, section: dict[str, Any]) -> None:
        self.section = section

    async def stored(self) -> list[Any]:
        """Not asked here."""
        return []


def peak_bytes() -> int:
    """The highest resident memory of this process so far."""
    return _bytes_of("VmHWM:")


def mapped_bytes() -> int:
    """The resident memory of this process that is mapped from files, now."""
    return _bytes_of("RssFile:")


def _bytes_of(name: str) -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024


async def main() -> None:
    """Move the pages."""
    order = json.loads(sys.argv[1])
    sys.path.insert(0, order["folder"])
    body = body_of(order["kind"])
    sink = open_sink(document_of(Destination(order["sink"]), Path(order["folder"]), {}))
    await sink.open()
    budget = ByteBudget(order["budget"], sink.cost.of(LEAST_PAGE_BYTES, 0))
    context = WorkerContext(sink, WorkerMetrics("t"), budget, RateLimit(0))
    longest = busiest = 0.0

    async def watch() -> None:
        nonlocal longest, busiest
        while True:
            began, used = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.001)
            seconds = time.perf_counter() - began
            longest = max(longest, seconds)
            busiest = max(busiest, min(seconds, time.process_time() - used))

    def pipeline(name: str) -> Pipeline:
        channel_id = ChannelId(name)
        start = ChannelStart(channel_id, ChannelType.STREAM, Token("t"))
        ahead = ReadAhead(start, Pages(body, order["pages"]), context, on_read=lambda page: None)

        def confirmed(page: ReadPage) -> None:
            sink.checkpointed(channel_id, page.number)

        return Pipeline(ahead, context, open_fence(channel_id), confirmed)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(pipeline(f"c{number}").run() for number in range(order["channels"])))
    watching.cancel()
    await sink.close()
    found = {"peak": peak_bytes(), "mapped": mapped_bytes(), "longest": longest, "busiest": busiest}
    print(json.dumps(found), file=sys.stderr)


if __name__ == "__main__":
    # as `ots-tunnel run` has it
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    keep_freed_memory()
    asyncio.run(main())
