"""The loads that the emulator is measured with, each on a fresh process, and their figures."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ots_tunnel.protocol import table_pb2, tunnel_pb2
from tests.bench.emulator_rows import REQUEST_ROWS, ROW_BYTES, flights, row_of, write_requests
from tests.bench.emulator_target import Goal, Target
from tests.bench.raw_client import RawConnection, play, signed
from tests.support.programs.emulator_process import EmulatorProcess

MIB: Final = 1 << 20
WRITERS: Final = 4
READERS: Final = 2
#: Rows of the pages that are read repeatedly, and number of repetitions.
WARM_ROWS, ROUNDS = 100_000, 30
#: Partitions of a table that is read, and rows of a full page.
PARTITIONS, PAGE_ROWS = 4, 1000
CHANNELS, TUNNEL_CLIENTS, HEARTBEAT_SECONDS, BEATS = 200, 100, 5.0, 20
_KEYS: Final = {"device": table_pb2.STRING, "n": table_pb2.INTEGER}
_FLIGHT_KEYS: Final = {"carrier": table_pb2.STRING, "flight": table_pb2.INTEGER, "time_hour": table_pb2.STRING}

Load = Callable[[Target], list[Goal]]


def loads(rows: int) -> Mapping[str, tuple[tuple[Load, ...], tuple[str, ...]]]:
    """Every load by name, with the options its emulator is started with."""
    return {
        "read": (
            tuple(partial(_read, min(rows, WARM_ROWS), kind) for kind in ("Stream", "BaseData")),
            _aim(PARTITIONS),
        ),
        "write": ((partial(_write, rows, False), partial(_write, rows, True), partial(_write_flights, rows)), ()),
        "memory": ((partial(_memory, rows, False), partial(_memory, rows, True)), ()),
        "expiring": ((partial(_expiring, rows),), _aim(PARTITIONS)),
        "heartbeat": ((_heartbeats,), _aim(CHANNELS)),
        "idle": ((_idle,), ()),
    }


def _aim(partitions: int) -> tuple[str, ...]:
    return "--partitions", str(partitions)


def measure(rows: int, core: int, names: list[str]) -> list[Goal]:
    """The figures of the named loads, each on its own process."""
    goals: list[Goal] = []
    for name in names:
        wanted, options = loads(rows)[name]
        for load in wanted:
            goals += asyncio.run(_on_fresh_process(core, load, options))
    return goals


async def _on_fresh_process(core: int, load: Load, options: tuple[str, ...]) -> list[Goal]:
    async with EmulatorProcess(None, *options) as process:
        os.sched_setaffinity(process.pid, {core})
        return load(Target(process.pid, int(process.endpoint.rpartition(":")[2])))


# Reading


def _read(rows: int, kind: str, target: Target) -> list[Goal]:
    """Read every page once, then all of them repeatedly."""
    create_table(target, _KEYS, stream=True)
    _load(target, rows)
    full: list[bytes] = []
    first = target.rates(
        f"ReadRecords, {kind}, first read", rows, 300_000, lambda: full.extend(_read_all(target.port, kind))
    )
    play(target.port, READERS, full)
    again = [*itertools.chain.from_iterable(itertools.repeat(full, ROUNDS))]
    warm = target.rates(
        f"ReadRecords, {kind}, warm", len(again) * PAGE_ROWS, 1_500_000, lambda: play(target.port, READERS, again)
    )
    return first + warm


def _read_all(port: int, kind: str) -> list[bytes]:
    """Read a new tunnel to its end, all channels at once; return the requests that got full pages."""
    with RawConnection(port) as connection:
        tunnel_id = create_tunnel(connection, kind)
        channels = ready_channels(connection, tunnel_id)
        readers: deque[tuple[RawConnection, dict[str, str], bytes]] = deque()
        for channel in channels:
            ids = {"tunnel_id": tunnel_id, "client_id": "bench", "channel_id": channel.channel_id}
            token = connection.call("GetCheckpoint", **ids).checkpoint
            readers.append((RawConnection(port), ids, _ask(ids, token)))
    full = []
    for reader, _, request in readers:
        reader.send(request)
    while readers:
        reader, ids, request = readers.popleft()
        tail = _tail_of(reader.receive())
        if not tail.may_more_record:
            reader.close()
            continue
        full.append(request)
        request = _ask(ids, tail.next_token)
        reader.send(request)
        readers.append((reader, ids, request))
    return full


def _ask(ids: Mapping[str, str], token: str) -> bytes:
    return signed("ReadRecords", tunnel_pb2.ReadRecordsRequest(**ids, token=token))


def _tail_of(page: bytes) -> Any:
    """The bytes after the records of a page; a token holds no byte that equals its field's tag."""
    return tunnel_pb2.ReadRecordsResponse.FromString(page[page.rindex(b"\x12") :])


# Writing


def _write(rows: int, stream: bool, target: Target) -> list[Goal]:
    kind = "with a change log" if stream else "without a change log"
    bodies = write_requests("t", (row_of(number) for number in range(rows)))
    requests = [signed("BatchWriteRow", body) for body in bodies]
    create_table(target, _KEYS, stream=stream)
    return target.rates(
        f"BatchWriteRow, {WRITERS} clients, {kind}", rows, 40_000, lambda: play(target.port, WRITERS, requests)
    )


def _write_flights(rows: int, target: Target) -> list[Goal]:
    create_table(target, _FLIGHT_KEYS, stream=True)
    requests = [signed("BatchWriteRow", body) for body in write_requests("t", flights(rows // 3))]
    name = "BatchWriteRow of the demo's flights (19 columns), with a change log"
    return target.rates(name, rows // 3, None, lambda: play(target.port, WRITERS, requests))


def _memory(rows: int, stream: bool, target: Target) -> list[Goal]:
    create_table(target, _KEYS, name="before", stream=stream)
    _load(target, 10 * REQUEST_ROWS, "before")
    create_table(target, _KEYS, stream=stream)
    before = target.resident_bytes()
    _load(target, rows)
    grown = (target.resident_bytes() - before) / rows / ROW_BYTES
    kind = "with its entry of the change log" if stream else "without a stream"
    return [Goal(f"memory of a row, {kind}", grown, 5 if stream else 3, "x its bytes", at_least=False)]


def _expiring(rows: int, target: Target) -> list[Goal]:
    """Memory of a table with a time to live; its rows may be visited when they expire, and at no other time."""
    create_table(target, _KEYS, stream=False, time_to_live=30 * 86_400)
    _load(target, 10 * REQUEST_ROWS)
    before = target.resident_bytes()
    _load(target, rows)
    grown = (target.resident_bytes() - before) / (rows - 10 * REQUEST_ROWS) / ROW_BYTES
    name = "ReadRecords, BaseData, of a table with a time to live, first read"
    return [
        *target.rates(name, rows, 300_000, lambda: _read_all(target.port, "BaseData")),
        Goal("memory of a row, with a time to live", grown, 3, "x its bytes", at_least=False),
    ]


# Heartbeats


def _heartbeats(target: Target) -> list[Goal]:
    """Clients send heartbeats as fast as they can; the cost of one is the same at a normal interval."""
    create_table(target, _KEYS, stream=False)
    _load(target, CHANNELS * 20)
    with RawConnection(target.port) as connection:
        tunnel_id = create_tunnel(connection, "Stream")
        assert len(ready_channels(connection, tunnel_id)) == CHANNELS
        config = tunnel_pb2.ClientConfig(timeout=300, client_tag="bench")
        clients = [
            connection.call("Connect", tunnel_id=tunnel_id, client_config=config).client_id
            for _ in range(TUNNEL_CLIENTS)
        ]
        held: dict[str, list[Any]] = {client: [] for client in clients}
        began = target.cpu_seconds()
        for client in clients * BEATS:
            beat = {"tunnel_id": tunnel_id, "client_id": client}
            held[client] = [*connection.call("Heartbeat", **beat, channels=held[client]).channels]
            for channel in held[client]:
                if channel.status == tunnel_pb2.CLOSING:
                    channel.status, channel.version = tunnel_pb2.CLOSE, channel.version + 1
        used = target.cpu_seconds() - began
    assert {len(channels) for channels in held.values()} == {CHANNELS // TUNNEL_CLIENTS}
    share = used / (TUNNEL_CLIENTS * BEATS) * TUNNEL_CLIENTS / HEARTBEAT_SECONDS
    name = f"{CHANNELS} channels, {TUNNEL_CLIENTS} clients with {HEARTBEAT_SECONDS:.0f} s heartbeats"
    return [Goal(name, share, 0.2, "of a core", at_least=False)]


# Tables and tunnels


def create_table(
    target: Target, keys: Mapping[str, int], *, name: str = "t", stream: bool, time_to_live: int = -1
) -> None:
    """A table that keeps one version."""
    request = table_pb2.CreateTableRequest(
        table_meta=table_pb2.TableMeta(table_name=name),
        reserved_throughput=table_pb2.ReservedThroughput(capacity_unit=table_pb2.CapacityUnit(read=0, write=0)),
        table_options=table_pb2.TableOptions(time_to_live=time_to_live, max_versions=1),
    )
    for column, kind in keys.items():
        request.table_meta.primary_key.add(name=column, type=kind)
    if stream:
        request.stream_spec.enable_stream = True
        request.stream_spec.expiration_time = 24
    with RawConnection(target.port) as connection:
        connection.exchange(signed("CreateTable", request))


def _load(target: Target, rows: int, table: str = "t") -> None:
    """Write rows whose cells have versions, so that a stored row has the length of the sent one."""
    now_ms = int(time.time() * 1000)
    bodies = write_requests(table, (row_of(number, version_ms=now_ms) for number in range(rows)))
    play(target.port, WRITERS, (signed("BatchWriteRow", body) for body in bodies))


def create_tunnel(connection: RawConnection, kind: str) -> str:
    """A tunnel over all rows and changes."""
    config = None if kind == "BaseData" else tunnel_pb2.StreamTunnelConfig(flag=tunnel_pb2.EARLIEST)
    wanted = tunnel_pb2.Tunnel(table_name="t", tunnel_name=kind, tunnel_type=kind, stream_tunnel_config=config)
    return str(connection.call("CreateTunnel", tunnel=wanted).tunnel_id)


def ready_channels(connection: RawConnection, tunnel_id: str) -> list[Any]:
    """Wait for the channels of a tunnel."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = connection.call("DescribeTunnel", table_name="t", tunnel_name="", tunnel_id=tunnel_id).channels
        if found:
            return [*found]
        time.sleep(0.01)
    raise TimeoutError(f"tunnel {tunnel_id} has no channels")


# Nothing


def _idle(target: Target) -> list[Goal]:
    """The memory of an emulator that has no table yet."""
    with RawConnection(target.port):
        return [Goal("memory, idle", target.resident_bytes() / MIB, 80, "MB resident", at_least=False)]
