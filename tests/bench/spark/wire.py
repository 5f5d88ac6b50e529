"""What reading in Spark takes over the wire, beside what was asked for: some of the columns, and a range of keys."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from tests.bench.bench_scene import KEYS, BenchScene
from tests.bench.emulator_target import Goal
from tests.bench.spark.counting_proxy import CountingProxy, counting_proxy
from tests.bench.spark.passes import passes_of
from tests.bench.spark.rows import asked_bytes, create_rows
from tests.bench.spark.session import SparkHost
from tests.bench.spark.works import ALL, TWO, schema_of
from tests.bench.start import say
from tests.bench.tables.speed import SPARK_BESIDES

TABLE = "asked"
#: The range has one key in a hundred.
SHARE = 100
_FIRST = f"device < 'device-{KEYS // SHARE:08d}'"


async def wire(scene: BenchScene, host: SparkHost, rows: int) -> list[Goal]:
    """Bytes of two columns beside those of their cells and keys, and bytes and requests of one key in a hundred.

    Args:
        rows: of the table.
    """
    await create_rows(scene, TABLE, rows)
    port = urlsplit(scene.endpoint).port
    assert port is not None
    async with counting_proxy(port) as (proxy, endpoint):
        account = host.account(endpoint)

        async def read(name: str, columns: tuple[str, ...], expected: int, **options: str) -> None:
            document = {
                "kind": "read_into_noop",
                "of": "table",
                "runs": [TABLE],
                "schema": schema_of(columns),
                "options": {**account, **options},
            }
            command = host.command("spark_program", name, document)
            proxy.reset()
            (found,) = await asyncio.to_thread(passes_of, command, (host.core,), host.environment(), 1)
            if found.rows != expected:
                raise RuntimeError(f"{name}: found {found.rows} rows, the table has {expected} of them")
            _tell(name, proxy)

        await read("wire-all", tuple(ALL), rows)
        every, requests = proxy.answer_bytes, proxy.answers
        await read("wire-two", TWO, rows)
        two = proxy.answer_bytes
        await read("wire-range", tuple(ALL), rows // SHARE, where=_FIRST)
        part, few = proxy.answer_bytes, proxy.answers
    settings = f"{rows:,} rows"
    return [
        Goal(
            f"{SPARK_BESIDES}: bytes over the wire for 2 of 10 columns, beside their cells and keys ({settings})",
            two / asked_bytes(rows, TWO),
            1.1,
            "times",
            at_least=False,
        ),
        Goal(
            f"{SPARK_BESIDES}: bytes over the wire for 1 % of the keys ({settings})",
            part / every * 100,
            1.1,
            "% of all",
            at_least=False,
        ),
        Goal(
            f"{SPARK_BESIDES}: requests for 1 % of the keys, of {requests} for all ({settings})", few, None, "requests"
        ),
    ]


def _tell(name: str, proxy: CountingProxy) -> None:
    say(f"{name}: {proxy.answers} requests, {proxy.answer_bytes:,} bytes of answers")
