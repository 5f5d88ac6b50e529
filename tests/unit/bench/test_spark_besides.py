"""What the bench of Spark measures besides the costs of rows: what is counted, lags, and the table."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ots_tunnel.protocol.plainbuffer.codec import encode_row
from tests.bench.bench_scene import key_of, row_of
from tests.bench.spark.counting_proxy import counting_proxy
from tests.bench.spark.mirror_lag import lags_of
from tests.bench.spark.rows import asked_bytes
from tests.bench.tables.speed import SPARK_BESIDES, spark_besides_table

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody"


@asynccontextmanager
async def server(pieces: int) -> AsyncIterator[int]:
    """Answers every line it gets, in as many pieces; its port."""

    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        serving.append(handler)
        step = len(ANSWER) // pieces + 1
        while await reader.readline():
            for start in range(0, len(ANSWER), step):
                writer.write(ANSWER[start : start + step])
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()
        await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]
        await asyncio.gather(*serving)


@pytest.mark.parametrize("pieces", [1, 30])
async def test_a_proxy_counts_answers_and_their_bytes(pieces: int) -> None:
    async with server(pieces) as port, counting_proxy(port) as (proxy, endpoint):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(endpoint.rpartition(":")[2]))
        for _ in range(3):
            writer.write(b"ask\n")
            assert await reader.readexactly(len(ANSWER)) == ANSWER

        assert (proxy.answers, proxy.answer_bytes) == (3, 3 * len(ANSWER))
        proxy.reset()
        assert (proxy.answers, proxy.answer_bytes) == (0, 0)
        writer.close()
        await writer.wait_closed()


def test_a_request_has_the_lag_of_the_first_version_with_it() -> None:
    sent = {1: 10.0, 2: 11.0, 3: 12.0}

    assert lags_of(sent, [(9.0, 0), (15.0, 2), (21.0, 3)]) == [5.0, 4.0, 9.0]


@pytest.mark.parametrize("versions", [[], [(9.0, 0), (15.0, 2)]])
def test_a_mirror_without_the_last_request_is_no_measurement(versions: list[tuple[float, int]]) -> None:
    with pytest.raises(RuntimeError, match="3 were sent"):
        lags_of({1: 10.0, 3: 12.0}, versions)


def test_what_is_asked_for_is_the_key_and_the_cells() -> None:
    every = asked_bytes(10, [cell.name for cell in row_of(0)])
    two = asked_bytes(10, ["amount", "customer"])

    assert asked_bytes(10, []) == 10 * len(encode_row(key_of(0), (), header=False)) < two < every / 2


def test_the_table_has_a_line_for_each_figure() -> None:
    documents = [
        {
            "name": f"{SPARK_BESIDES}: lag of a mirror (trigger of 5 s)",
            "ours": 7.25,
            "goal": 15,
            "unit": "s",
            "met": True,
        },
        {"name": f"{SPARK_BESIDES}: requests (of 9)", "ours": 4, "goal": None, "unit": "requests", "met": None},
        {"name": "another", "ours": 1, "goal": None, "unit": "", "met": None},
    ]

    assert spark_besides_table(documents).splitlines()[2:] == [
        "| lag of a mirror | 7.25 | 15 | s | yes |",
        "| requests | 4 |  | requests |  |",
    ]
    assert spark_besides_table([]) == "No run of `make bench` with these has been kept yet.\n"
