"""Measure the emulator's cost of a data directory: writes beside memory mode, start, disk.

    python -m tests.bench.emulator_durable [--rows N]

The emulator has one core, the clients another. The start is that of a killed emulator, less that of an empty one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Credentials
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.transport.aio import AioTransport
from tests.bench.figures import Figure
from tests.support.programs.emulator_process import EmulatorProcess

CREDENTIALS = static_credentials(Credentials("test-id", "test-secret"))
CLIENTS = 4
REQUEST_ROWS = 200
VALUE = "x" * 127
IGNORE = pb.Condition(row_existence=pb.IGNORE)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=300_000, help="rows to write (default 300000)")
    rows = parser.parse_args().rows
    table = Table("what", "with --data", "in memory", "unit", "ratio")
    for figure in asyncio.run(durable_figures(rows)):
        numbers = (f"{number:,.1f}" for number in (figure.ours, figure.peer))
        table.add_row(figure.name, *numbers, figure.unit, f"{figure.ratio:.2f}")
    Console(width=140).print(table)


async def durable_figures(rows: int) -> list[Figure]:
    """Write the same rows with and without a data directory, and restart; `ours` is the figure with one."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-1:])
    rates, cpu, starts, sizes = {}, {}, {}, {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for kind, stream in (("without a stream", False), ("with a stream", True)):
                for data in (None, Path(folder) / kind.replace(" ", "-")):
                    async with EmulatorProcess(data) as process:
                        os.sched_setaffinity(process.pid, cores[:1])
                        before = _cpu_seconds(process.pid)
                        rates[kind, data is None] = await _write(process, rows, stream=stream)
                        cpu[kind, data is None] = (_cpu_seconds(process.pid) - before) / rows * 1e6
                        await process.kill()
                        starts[kind, data is None] = await _start(process)
                        if data is not None:
                            await process.stop()
                            sizes[kind] = sum(path.stat().st_size for path in data.iterdir())
    finally:
        os.sched_setaffinity(0, cores)
    figures = []
    for kind, size in sizes.items():
        per_row = len(_row(0)) - 4
        ours, empty = starts[kind, False], starts[kind, True]
        name = f"{rows:,} rows of {per_row} bytes {kind}"
        figures += [
            Figure(f"{name}: BatchWriteRow, {CLIENTS} clients", rates[kind, False], rates[kind, True], "rows/s"),
            Figure(f"{name}: the emulator's CPU for it", cpu[kind, False], cpu[kind, True], "us/row"),
            Figure(f"{name}: start after kill -9", ours, empty, "s"),
            Figure(f"{name}: start after kill -9", (ours - empty) / rows * 1e6, 0, "us/row"),
            Figure(f"{name}: disk (beside: the row)", size / rows, per_row, "bytes/row"),
        ]
    return figures


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _write(process: EmulatorProcess, rows: int, *, stream: bool) -> float:
    """Rows per second of clients that write at the same time."""
    callers = [ServiceCaller(AioTransport(process.endpoint), "demo", CREDENTIALS) for _ in range(CLIENTS)]
    try:
        await callers[0].call(TABLE_OPERATIONS["CreateTable"], _table(stream=stream))
        requests = [_request(first, min(first + REQUEST_ROWS, rows)) for first in range(0, rows, REQUEST_ROWS)]
        left = iter(requests)
        began = time.perf_counter()
        await asyncio.gather(*(_send(caller, left) for caller in callers))
        return rows / (time.perf_counter() - began)
    finally:
        for caller in callers:
            await caller.close()


async def _send(caller: ServiceCaller, requests: Iterator[bytes]) -> None:
    for request in requests:
        answer, _ = await caller.call(TABLE_OPERATIONS["BatchWriteRow"], request)
        assert all(row.is_ok for row in answer.tables[0].rows)


async def _start(process: EmulatorProcess) -> float:
    """Seconds until the emulator is ready."""
    began = time.perf_counter()
    await process.start()
    return time.perf_counter() - began


def _table(*, stream: bool) -> pb.CreateTableRequest:
    request = pb.CreateTableRequest(
        table_meta=pb.TableMeta(table_name="t", primary_key=[pb.PrimaryKeySchema(name="key", type=pb.STRING)]),
        reserved_throughput=pb.ReservedThroughput(capacity_unit=pb.CapacityUnit(read=0, write=0)),
        table_options=pb.TableOptions(time_to_live=-1, max_versions=1),
    )
    if stream:
        request.stream_spec.enable_stream = True
        request.stream_spec.expiration_time = 24
    return request


def _request(first: int, end: int) -> bytes:
    rows = [
        pb.RowInBatchWriteRowRequest(type=pb.PUT, row_change=_row(number), condition=IGNORE)
        for number in range(first, end)
    ]
    return pb.BatchWriteRowRequest(
        tables=[pb.TableInBatchWriteRowRequest(table_name="t", rows=rows)]
    ).SerializeToString()


def _row(number: int) -> bytes:
    # Scattered keys: rows written one after the other are not neighbours in the table.
    key = f"{number * 2654435761 % (1 << 32):010d}"
    return encode_row((("key", key),), (Column("text", VALUE), Column("n", number)))


if __name__ == "__main__":
    main()
