"""A worker on its core: its start, its end, its CPU time and memory, and its report."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.bench.bench_scene import DEADLINE, POLL, BenchScene, Tunnel
from tests.bench.contenders import CommandLines, Contender, Job
from tests.bench.programs.milestone_worker import Point

ROOT = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Report:
    """A worker's report at its end.

    Args:
        busy_seconds: from the first callback to the end of the last; only the vendor's programs report it.
        sent, delayed: per record, in microseconds, see `processors.latency`.
        marked, last: progress after `Job.mark` rows, and at the end.
        resident_mb: highest value, measured from outside.
    """

    rows: int = 0
    touched: int = 0
    busy_seconds: float = 0.0
    sent: list[int] = field(default_factory=list)
    delayed: list[int] = field(default_factory=list)
    marked: Point | None = None
    last: Point | None = None
    resident_mb: float = 0.0


def report_of(lines: Iterable[str]) -> Report:
    """The report in a worker's standard output and error; other lines are ignored."""
    report = Report()
    for line in lines:
        document = _object(line)
        if "rows" in document and ("seconds" in document or document.get("action") == "stopped"):
            report.rows = document["rows"]
            report.busy_seconds = document.get("busySeconds", 0.0)
        report.touched += document.get("touched", 0)
        report.sent += document.get("sent", ())
        report.delayed += document.get("delayed", ())
        if "marked" in document:
            report.marked, report.last = Point(*document["marked"]), Point(*document["last"])
    return report


def _object(line: str) -> dict[str, Any]:
    try:
        document = json.loads(line) if line.startswith("{") else {}
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


@dataclass(frozen=True, slots=True)
class Lab:
    """The scene, the programs, the consumer's core and a folder for the files of runs."""

    scene: BenchScene
    programs: CommandLines
    folder: Path
    core: int

    def consumer(
        self, contender: Contender, tunnel: Tunnel, job: Job, *, profile: Path | None = None, stdout: int | None = None
    ) -> Consumer:
        """A worker that is not started yet.

        Args:
            profile: file for cProfile.
            stdout: file descriptor in the place of a file for its standard output.
        """
        folder = self.folder / contender.name.lower()
        folder.mkdir(exist_ok=True)
        command = self.programs.command(contender, self.scene.endpoint, tunnel, job, folder)
        if profile is not None:
            command[1:2] = ["-m", "cProfile", "-o", str(profile), "-m"]
        return Consumer(contender, ["taskset", "--cpu-list", str(self.core), *command], folder, stdout)

    async def measure(
        self,
        contender: Contender,
        table: str,
        rows: int,
        job: Job,
        *,
        profile: Path | None = None,
        stdout: int | None = None,
    ) -> Report:
        """Run a worker over the first `rows` changes of a table; see `consumer`.

        Raises:
            RuntimeError: the worker ended by itself, or did not see every row once.
        """
        tunnel = await self.scene.create_tunnel(table, rows)
        await self.scene.check_channels(tunnel)
        with self.consumer(contender, tunnel, job, profile=profile, stdout=stdout) as consumer:
            async with asyncio.timeout(DEADLINE):
                while not await self.scene.is_finished(tunnel):
                    consumer.check()
                    await asyncio.sleep(POLL)
            resident_mb = consumer.most_resident_mb()
            await consumer.end()
        report = consumer.report()
        report.resident_mb = resident_mb
        check_count(contender, job, rows, report)
        return report


def check_count(contender: Contender, job: Job, rows: int, report: Report) -> None:
    """Check that every row came once, with every column that the job touches.

    Raises:
        RuntimeError: rows or columns are missing, or came twice.
    """
    touched = {"column": rows, "all": rows * COLUMNS}.get(job.mode, 0)
    if (report.rows, report.touched) != (rows, touched):
        raise RuntimeError(
            f"{job.mode}, {contender}: {report.rows:,} rows and {report.touched:,} columns came, "
            f"there were {rows:,} and {touched:,}"
        )


#: Columns of a row of the scene.
COLUMNS = 8


class Consumer:
    """A worker process.

    Args:
        stdout: file descriptor in the place of a file for its standard output.
    """

    def __init__(self, contender: Contender, command: list[str], folder: Path, stdout: int | None = None) -> None:
        self._contender = contender
        self._command = command
        self._folder = folder
        self._stdout = stdout
        self._outputs = (folder / "output", folder / "errors")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        output, errors = (path.open("wb") for path in self._outputs)
        with output, errors:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdout=output if self._stdout is None else self._stdout,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'worker'}", "OTS_TUNNEL_CODEC": "compiled"},
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._process.wait()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def check(self) -> None:
        """Check that the process still runs.

        Raises:
            RuntimeError: it has ended.
        """
        if self.process.poll() is not None:
            status = self.process.returncode
            raise RuntimeError(f"{self._contender} ended by itself with status {status}: {self._text()[-2000:]}")

    async def ended(self, seconds: float) -> None:
        """Wait until the worker ends by itself.

        Raises:
            RuntimeError: it failed, or goes on.
        """
        try:
            status = await asyncio.to_thread(self.process.wait, seconds)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self._contender} goes on after {seconds:.0f} s: {self._text()[-2000:]}") from None
        if status:
            raise RuntimeError(f"{self._contender} ended with status {status}: {self._text()[-2000:]}")

    async def end(self) -> None:
        """Stop the worker and wait for its end.

        Raises:
            RuntimeError: it failed.
        """
        self.check()
        self.process.send_signal(signal.SIGTERM)
        await self.ended(60)

    def report(self) -> Report:
        """The worker's report."""
        return report_of(self._text().splitlines())

    def cpu_seconds(self) -> float:
        """CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_mb(self) -> float:
        """Resident memory now."""
        return self._memory("VmRSS:")

    def most_resident_mb(self) -> float:
        """Highest resident memory so far."""
        return self._memory("VmHWM:")

    def _memory(self, name: str) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"{self._contender} has ended: {self._text()[-2000:]}")

    def _text(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in self._outputs)
