"""A copy whose path to the destination loses packets; run by tests in a network namespace of its own.

Usage: lossy_copy blackout PATH     the path breaks for longer than D
       lossy_copy killed PATH       meanwhile the worker is killed, and another one takes its channel over

       lossy_copy chaos SEED        the path breaks and heals by chance for a minute

Exit code 0: the tables are equal and stay equal until every packet that the kernel could still send has had its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from ots_emulator import Emulator, Settings
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.config import DeliveryConfig
from ots_tunnel.model import TunnelId, TunnelType
from ots_tunnel.sinks.table.sink import TablestoreSink
from ots_tunnel.verify.compare import compare_tables
from ots_tunnel.worker.settings import WorkerSettings
from ots_tunnel.worker.worker import TunnelWorker
from tests.support.emulator.emulator_scene import COPY, CREDENTIALS, FAST, TABLE, EmulatorScene
from tests.support.network.paths import Path, broken
from tests.support.waiting import until

KEYS = [f"k{number:03}" for number in range(200)]
#: D is 2 s.
TIMES: WorkerSettings = replace(FAST, interval=1, timeout=7, drain=6, checkpoint_interval=0.5, early_spacing=0.2)
#: Seconds that the path is broken. The kernel repeats a lost packet 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s after it was sent:
#: the next time after the path is back is late enough for newer values to be there.
BLACKOUT, KILLED = 3.5, 9.0
#: Seconds in which paths break by chance.
CHAOS = 60.0
#: Seconds after the start of the break when the last repetition has passed.
SETTLED = {"blackout": 8.0, "killed": 15.0}


def worker_on(endpoint: str, destination: str, tunnel_id: str) -> TunnelWorker:
    sink = TablestoreSink(
        TableClient(destination, "demo", CREDENTIALS),
        COPY,
        delivery=DeliveryConfig(),
        lanes=8,
        deadline=TIMES.write_deadline,
    )
    client = TunnelClient(endpoint, "demo", CREDENTIALS)
    return TunnelWorker(client, sink, replace(TIMES, tunnel_id=TunnelId(tunnel_id)))


@contextlib.asynccontextmanager
async def proxy(upstream: int) -> AsyncIterator[int]:
    """The port of a proxy, by which the destination is reached."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", upstream)
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def lose_packets(what: str, path: Path) -> None:
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table()
        await scene.create_table(table=COPY)
        await scene.create_tunnel(TunnelType.Stream)

        async def is_equal() -> bool:
            return (await compare_tables(scene.table, TABLE, scene.table, COPY)).equal

        async with proxy(int(emulator.endpoint.rpartition(":")[2])) as port:
            place = (emulator.endpoint, f"http://127.0.0.1:{port}", scene.tunnel_id)
            first = await asyncio.create_subprocess_exec(sys.executable, "-m", __spec__.name, "worker", *place)
            await scene.put(KEYS)
            await until(is_equal, 60, "the first values are copied")
            second: asyncio.Task[None] | None = None
            began = time.monotonic()
            with broken(path, port):
                await scene.put(KEYS, [2])
                await asyncio.sleep(1.5)  # the first worker has read it, and its write is under way
                if what == "killed":
                    first.kill()
                    second = asyncio.create_task(worker_on(*place).run())
                await scene.put(KEYS, [3])
                await asyncio.sleep((BLACKOUT if what == "blackout" else KILLED) - (time.monotonic() - began))
            await until(is_equal, 60, "the tables are equal")
            while time.monotonic() - began < SETTLED[what]:
                assert await is_equal(), "an old value has overwritten a new one"
                await asyncio.sleep(0.1)
            if second is not None:
                second.cancel()
            elif first.returncode is None:
                first.terminate()
            await asyncio.wait_for(first.wait(), 30)


async def break_by_chance(seed: int) -> None:
    chance = random.Random(seed)
    async with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        scene = EmulatorScene(emulator)
        await scene.create_table(partitions=2)
        await scene.create_table(table=COPY)
        await scene.create_tunnel(TunnelType.Stream)

        async def is_equal() -> bool:
            return (await compare_tables(scene.table, TABLE, scene.table, COPY)).equal

        async with proxy(int(emulator.endpoint.rpartition(":")[2])) as port, asyncio.TaskGroup() as tasks:
            place = (emulator.endpoint, f"http://127.0.0.1:{port}", scene.tunnel_id)
            workers = [worker_on(*place) for _ in range(2)]
            for worker in workers:
                tasks.create_task(worker.run())
            number, began = 1, time.monotonic()
            while time.monotonic() - began < CHAOS:
                path, seconds = chance.choice(list(Path)), chance.uniform(0.3, 8)
                print(f"{time.monotonic() - began:5.1f} s: {path.name} for {seconds:.1f} s", flush=True)
                with broken(path, port):
                    until_then = time.monotonic() + seconds
                    while time.monotonic() < until_then:
                        number += 1
                        await scene.put(chance.sample(KEYS, 50), [number])
                        await asyncio.sleep(chance.uniform(0.05, 0.5))
                await asyncio.sleep(chance.uniform(0, 4))
            await until(is_equal, 40, "the tables are equal")
            settled = time.monotonic() + SETTLED["killed"]
            while time.monotonic() < settled:
                assert await is_equal(), "an old value has overwritten a new one"
                await asyncio.sleep(0.2)
            for worker in workers:
                worker.drain()


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "worker":
        asyncio.run(worker_on(*rest).run())
    elif what == "chaos":
        asyncio.run(break_by_chance(int(rest[0])))
    else:
        asyncio.run(lose_packets(what, Path[rest[0]]))


if __name__ == "__main__":
    main()
