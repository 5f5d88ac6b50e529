"""One measured run: a worker on its core until every channel is finished, and what it used."""

from __future__ import annotations

import asyncio
import os
import pstats
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ots_tunnel.config import (
    ClientConfig,
    CountSinkConfig,
    CredentialsConfig,
    DeliveryConfig,
    HttpConfig,
    SinkConfig,
    TablestoreSinkConfig,
    TunnelConfig,
    WorkerConfig,
    dump_config,
)
from ots_tunnel.model import TunnelId
from tests.bench.stand import DEADLINE, POLL, REQUEST_ROWS, Stand
from tests.oracle.go_program import go_command

HEARTBEAT, TIMEOUT, CHECKPOINT = 5, 16, 1  # the Go program's checkpoint interval is fixed
#: One writer per channel: the Go program's callback writes one request after the other.
LANES = 1


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker does with the records: `count` forgets them, `copy` writes them to table `copy`."""

    mode: str
    copy: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one run took: CPU of the process tree with user and system time, wall time until the last checkpoint."""

    cpu_seconds: float
    seconds: float
    resident_mb: float


def our_command(stand: Stand, tunnel_id: TunnelId, table: str, work: Work, folder: Path) -> list[str]:
    """`ots-tunnel run` with the settings of the comparison."""
    keys = folder / "keys"
    keys.mkdir(exist_ok=True)
    (keys / "accessKeyId").write_text("test-id")
    (keys / "accessKeySecret").write_text("test-secret")
    credentials = CredentialsConfig(directory=keys)
    instance = {"endpoint": stand.endpoint, "instance": "demo", "credentials": credentials}
    sink = (
        SinkConfig(tablestore=TablestoreSinkConfig(**instance, table=work.copy))
        if work.mode == "copy"
        else SinkConfig(count=CountSinkConfig())
    )
    config = WorkerConfig(
        source=TunnelConfig(**instance, table=table, tunnel_name="bench", tunnel_id=tunnel_id),
        sink=sink,
        client=ClientConfig(
            heartbeat_interval_seconds=HEARTBEAT,
            heartbeat_timeout_seconds=TIMEOUT,
            checkpoint_interval_seconds=CHECKPOINT,
            lanes_per_channel=LANES,
        ),
        delivery=DeliveryConfig(batch_max_rows=REQUEST_ROWS),
        http=HttpConfig(port=0),
    )
    document = folder / "worker.yaml"
    document.write_text(dump_config(config))
    return ["-m", "ots_tunnel", "run", "--config", str(document), "--log-level", "WARNING"]


def their_command(program: Path, stand: Stand, tunnel_id: TunnelId, work: Work) -> list[str]:
    """The vendor's worker with the same settings."""
    flags = {"heartbeat": f"{HEARTBEAT}s", "timeout": f"{TIMEOUT}s"}
    return go_command(program, stand.endpoint, tunnel_id, work.mode, copy_to=work.copy, **flags)


async def measure_ours(stand: Stand, table: str, work: Work, folder: Path, core: int) -> Usage:
    """One run of our worker."""
    tunnel_id = await stand.create_tunnel(table)
    command = [sys.executable, *our_command(stand, tunnel_id, table, work, folder)]
    return await _measure(stand, tunnel_id, table, command, core, folder)


async def measure_theirs(stand: Stand, table: str, work: Work, program: Path, folder: Path, core: int) -> Usage:
    """One run of the vendor's worker."""
    tunnel_id = await stand.create_tunnel(table)
    return await _measure(stand, tunnel_id, table, their_command(program, stand, tunnel_id, work), core, folder)


async def profile_ours(stand: Stand, table: str, work: Work, folder: Path, core: int) -> pstats.Stats:
    """One run of our worker under cProfile."""
    tunnel_id = await stand.create_tunnel(table)
    output = folder / f"{work.mode}.profile"
    command = our_command(stand, tunnel_id, table, work, folder)
    await _measure(
        stand, tunnel_id, table, [sys.executable, "-m", "cProfile", "-o", str(output), *command], core, folder
    )
    return pstats.Stats(str(output))


async def _measure(stand: Stand, tunnel_id: TunnelId, table: str, command: list[str], core: int, folder: Path) -> Usage:
    channels = await stand.channels(table, tunnel_id)
    pinned = ["taskset", "--cpu-list", str(core), *command]
    began = time.monotonic()
    # Not by asyncio, whose own wait for the child would take the resource usage away. The vendor's worker leaves a log
    # in its folder.
    process = subprocess.Popen(pinned, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: ASYNC220
    try:
        async with asyncio.timeout(DEADLINE):
            while not await stand.is_finished(tunnel_id, channels):
                if process.poll() is not None:
                    assert process.stderr is not None
                    raise RuntimeError(f"{command[0]} ended: {process.stderr.read().decode(errors='replace')}")
                await asyncio.sleep(POLL)
        seconds = time.monotonic() - began
        resident_mb = _most_resident_mb(process.pid)
        process.send_signal(signal.SIGTERM)
        # Of the process and all its descendants; only a parent that waits learns it exactly.
        _, status, usage = await asyncio.to_thread(os.wait4, process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
        if process.stderr is not None:
            process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with status {process.returncode}")
    return Usage(usage.ru_utime + usage.ru_stime, seconds, resident_mb)


def _most_resident_mb(pid: int) -> float:
    # A child's ru_maxrss also counts what its parent had when it forked.
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} has ended")
