"""Worker processes, `ots-tunnel run`, that copy from one instance into another; they are killed, stopped and started.

Every process has its own name and AccessKey id, which identify it in the ledger.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from asyncio.subprocess import Process
from pathlib import Path
from typing import Final

from ots_tunnel.config import (
    ClientConfig,
    CredentialsConfig,
    DeliveryConfig,
    HttpConfig,
    RetryConfig,
    SinkConfig,
    TablestoreSinkConfig,
    TunnelConfig,
    WorkerConfig,
    dump_config,
)
from tests.chaos.judge import Strike
from tests.chaos.ledger import COPY
from tests.support.programs.processes import ROOT, inherited_environment, unmeasured

SOURCE: Final = "source"
TABLE: Final = "events"
TUNNEL: Final = "chaos"
INTERVAL, TIMEOUT = 5, 14
#: Keys per worker, which limits its starts.
STARTS = 12
#: Actions in the log that come before a repeat.
COMPLAINTS = ("channel_failed", "channel_abandoned", "client_gone", "heartbeat_failed")
#: Deadline in seconds for the drain of a worker.
LEAVING = 40


def name_of(worker: int, start: int) -> str:
    """Name and AccessKey id of a process."""
    return f"w{worker}-{start}"


class WorkerProcesses:
    """The worker processes of one run.

    Args:
        command: runs a worker in place of the real program; its arguments follow.
    """

    def __init__(self, endpoint: str, tunnel_id: str, folder: Path, command: tuple[str, ...] = ()) -> None:
        self._endpoint = endpoint
        self._tunnel_id = tunnel_id
        self._folder = folder
        self._command = command or ("-m", "ots_tunnel")
        self._processes: dict[int, Process] = {}
        self._starts: dict[int, int] = {}
        self.strikes: list[Strike] = []
        #: Names and exit codes of processes that had ended by themselves before they were killed or asked to.
        self.ended: list[str] = []

    def name(self, worker: int) -> str:
        """Name of a worker's latest process."""
        return name_of(worker, self._starts[worker])

    async def start(self, worker: int) -> None:
        """Start a worker, under a new name each time."""
        start = self._starts[worker] = self._starts.get(worker, -1) + 1
        name = name_of(worker, start)
        path = self._folder / f"{name}.yaml"
        path.write_text(dump_config(self._document(name)))
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[worker] = await asyncio.create_subprocess_exec(
                sys.executable,
                *self._command,
                "run",
                "--config",
                str(path),
                stderr=log,
                stdout=log,
                env=unmeasured(inherited_environment(ROOT)),
            )

    async def kill(self, worker: int) -> None:
        """Kill a worker."""
        self._strike(worker)
        process = self._processes[worker]
        if process.returncode is None:
            process.kill()
        if await process.wait() != -signal.SIGKILL:
            self.ended.append(f"{self.name(worker)}: {process.returncode}")

    def stop(self, worker: int) -> None:
        """Pause a worker with SIGSTOP."""
        self._strike(worker)
        self._send(worker, signal.SIGSTOP)

    def wake(self, worker: int) -> None:
        """Resume a worker."""
        self._send(worker, signal.SIGCONT)

    def complaints(self) -> list[str]:
        """The workers' log lines about lost channels and clients, in order of time."""
        lines = [
            {**json.loads(text), "who": path.stem}
            for path in self._folder.glob("w*.log")
            for text in path.read_text().splitlines()
            if any(action in text for action in COMPLAINTS)
        ]
        lines.sort(key=lambda line: str(line["time"]))
        return [
            f"{line['time']} {line['who']} {line['message']} {line.get('channel_id', '')} {line.get('error', '')}"
            for line in lines
        ]

    async def leave(self) -> list[int]:
        """Drain all workers; return their exit codes."""
        for worker, process in self._processes.items():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            else:
                self.ended.append(f"{self.name(worker)}: {process.returncode}")
        async with asyncio.timeout(LEAVING):
            return list(await asyncio.gather(*(process.wait() for process in self._processes.values())))

    async def dismiss(self) -> None:
        """Kill the remaining processes."""
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _send(self, worker: int, number: signal.Signals) -> None:
        if self._processes[worker].returncode is None:
            self._processes[worker].send_signal(number)

    def _strike(self, worker: int) -> None:
        self.strikes.append(Strike(self.name(worker), time.monotonic()))

    def _document(self, name: str) -> WorkerConfig:
        keys = self._folder / f"{name}.keys"
        keys.mkdir()
        (keys / "accessKeyId").write_text(name)
        (keys / "accessKeySecret").write_text("test-secret")
        to = {"endpoint": self._endpoint, "credentials": CredentialsConfig(directory=keys), "table": TABLE}
        return WorkerConfig(
            source=TunnelConfig(**to, instance=SOURCE, tunnel_name=TUNNEL, tunnel_id=self._tunnel_id),
            sink=SinkConfig(tablestore=TablestoreSinkConfig(**to, instance=COPY)),
            client=ClientConfig(
                tag_prefix=name,
                heartbeat_interval_seconds=INTERVAL,
                heartbeat_timeout_seconds=TIMEOUT,
                checkpoint_interval_seconds=0.5,
                lanes_per_channel=1,
                rate_limit_rows_per_second=150,
            ),
            delivery=DeliveryConfig(batch_max_rows=2, retry=RetryConfig(backoff_seconds=0.1, backoff_max_seconds=0.5)),
            http=HttpConfig(port=0),
        )
