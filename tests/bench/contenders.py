"""The workers that are measured, with their command lines: ours and the vendor's two, by default and at their best.

"Best" means the settings that were fastest of all that were tried.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from ots_tunnel.config import (
    ClientConfig,
    CountSinkConfig,
    CredentialsConfig,
    DeliveryConfig,
    FileColumnConfig,
    FilesSinkConfig,
    HttpConfig,
    HttpSinkConfig,
    KafkaSinkConfig,
    PythonSinkConfig,
    SinkConfig,
    StdoutSinkConfig,
    TablestoreSinkConfig,
    TunnelConfig,
    WorkerConfig,
    dump_config,
)
from tests.bench.bench_scene import Tunnel
from tests.support.programs.go_program import build_go_worker, go_command
from tests.support.programs.java_program import build_java_worker, quickest_command

#: A heap that only ever grows while it has room: the collector hardly runs.
QUICKEST_GO = ("GOGC=off", "GOMEMLIMIT=1GiB")
#: Modes that take the records to `Job.to`.
OUTLETS = ("lines", "parquet", "typed", "kafka", "http")
#: The heap for the vendor's defaults; without a limit it would depend on the machine.
DEFAULT_JVM = "-Xmx1g"


class Contender(StrEnum):
    """A worker with its configuration."""

    OURS = "ours"
    JAVA = "Java, best"
    JAVA_DEFAULT = "Java, default"
    GO = "Go, best"
    GO_DEFAULT = "Go, default"
    GO_UNDECODED = "Go, undecoded"


@dataclass(frozen=True, slots=True)
class Beat:
    """The settings all contenders share, in seconds."""

    heartbeat: int = 5
    timeout: int = 16
    checkpoint: int = 1
    longest_pause: float | None = None
    """Longest pause before an idle channel is read again; None is the contender's default. Ours adapts by itself."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker is asked to do.

    Args:
        mode: count, column, all, latency, copy, lines, parquet, typed, kafka or http.
        to: folder of lines (empty: standard output), parquet and typed, HOST:PORT/TOPIC of kafka, URL of http.
        columns: name and type of each column of typed.
        copy: destination table of copy.
        copy_endpoint: endpoint of the copy, None for the source's instance; only our worker has this setting.
        lanes: requests in flight per channel; the vendor's workers have one.
        delay_ms: time that a callback of the vendor's workers sleeps for each `delay_rows` rows.
        mark: rows after which time and CPU are recorded; 0 means never.
    """

    mode: str
    beat: Beat = Beat()
    copy: str = ""
    copy_endpoint: str | None = None
    to: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    request_rows: int = 200
    lanes: int = 1
    delay_ms: int = 0
    delay_rows: int = 0
    mark: int = 0


class CommandLines(Protocol):
    """Programs that are measured."""

    def command(self, contender: Contender, endpoint: str, tunnel: Tunnel, job: Job, folder: Path) -> list[str]:
        """The command line of one contender."""
        ...


@dataclass(frozen=True, slots=True)
class Programs:
    """The vendor's workers, built."""

    go: Path
    java: Path

    @classmethod
    def build(cls) -> Programs:
        """Build the missing programs.

        Raises:
            GoUnavailable, JavaUnavailable: this machine cannot build them; the text says why.
        """
        return cls(build_go_worker(), build_java_worker())

    def command(self, contender: Contender, endpoint: str, tunnel: Tunnel, job: Job, folder: Path) -> list[str]:
        """The command line of one contender; our worker's document is written to `folder`."""
        if contender is Contender.OURS:
            return our_command(endpoint, tunnel, job, folder)
        flags, tunnel_id = their_flags(contender, job), str(tunnel.tunnel_id)
        if job.mode in OUTLETS:  # what they write names table and tunnel
            flags["table"], tunnel_id = tunnel.table, tunnel.name
        if contender in (Contender.JAVA, Contender.JAVA_DEFAULT):
            if contender is Contender.JAVA:
                return quickest_command(self.java, endpoint, tunnel_id, job.mode, **flags)
            return [
                "env",
                f"JAVA_OPTIONS={DEFAULT_JVM}",
                *go_command(self.java, endpoint, tunnel_id, job.mode, **flags),
            ]
        mode = "undecoded" if contender is Contender.GO_UNDECODED else job.mode
        command = go_command(self.go, endpoint, tunnel_id, mode, **flags)
        return command if contender is Contender.GO_DEFAULT else ["env", *QUICKEST_GO, *command]


def their_flags(contender: Contender, job: Job) -> dict[str, object]:
    """Flags of the vendor's workers."""
    beat = job.beat
    flags: dict[str, object] = {
        "heartbeat": f"{beat.heartbeat}s",
        "timeout": f"{beat.timeout}s",
        "checkpoint": f"{beat.checkpoint}s",
    }
    if job.to:
        flags["to"] = f"{job.to}/lines" if job.mode == "lines" else job.to
    if job.columns:
        flags["columns"] = ",".join(":".join(column) for column in job.columns)
    if job.copy:
        flags["copy_to"] = job.copy
    if job.delay_ms:
        flags |= {"delay": f"{job.delay_ms}ms", "delay_rows": job.delay_rows}
    if job.mark:
        flags["mark"] = job.mark
    if beat.longest_pause is not None:
        flags["idle"] = f"{int(beat.longest_pause * 1000)}ms"
    return flags


def our_command(endpoint: str, tunnel: Tunnel, job: Job, folder: Path) -> list[str]:
    """`ots-tunnel run` with the settings of the comparison."""
    document = folder / "worker.yaml"
    document.write_text(dump_config(our_document(endpoint, tunnel, job, folder)))
    program = ["tests.bench.programs.milestone_worker", str(job.mark)] if job.mark else ["ots_tunnel"]
    return [sys.executable, "-m", *program, "run", "--config", str(document)]


def our_document(endpoint: str, tunnel: Tunnel, job: Job, folder: Path) -> WorkerConfig:
    """The worker's document; the keys are written into `folder`."""
    keys = folder / "keys"
    keys.mkdir(exist_ok=True)
    (keys / "accessKeyId").write_text("test-id")
    (keys / "accessKeySecret").write_text("test-secret")
    instance: dict[str, Any] = {"instance": "demo", "credentials": CredentialsConfig(directory=keys)}
    match job.mode:
        case "count":
            sink = SinkConfig(count=CountSinkConfig())
        case "copy":
            there = job.copy_endpoint or endpoint
            sink = SinkConfig(tablestore=TablestoreSinkConfig(endpoint=there, table=job.copy, **instance))
        case mode if mode in OUTLETS:
            sink = _outlet(job)
        case mode:
            factory = {"all": "all_columns"}.get(mode, mode)
            sink = SinkConfig(python=PythonSinkConfig(factory=f"tests.bench.programs.processors:{factory}"))
    source = {"table": tunnel.table, "tunnel_name": tunnel.name, "tunnel_id": tunnel.tunnel_id}
    return WorkerConfig(
        source=TunnelConfig(endpoint=endpoint, **source, **instance),
        sink=sink,
        client=ClientConfig(
            heartbeat_interval_seconds=job.beat.heartbeat,
            heartbeat_timeout_seconds=job.beat.timeout,
            checkpoint_interval_seconds=job.beat.checkpoint,
            lanes_per_channel=job.lanes,
        ),
        delivery=DeliveryConfig(batch_max_rows=job.request_rows),
        http=HttpConfig(port=0),
    )


def _outlet(job: Job) -> SinkConfig:
    """The sink of a mode of `OUTLETS`, as it is by default."""
    match job.mode:
        case "kafka":
            server, _, topic = job.to.partition("/")
            return SinkConfig(kafka=KafkaSinkConfig(bootstrap_servers=(server,), topic=topic))
        case "http":
            return SinkConfig(http=HttpSinkConfig(url=job.to))
        case _ if not job.to:
            return SinkConfig(stdout=StdoutSinkConfig())
        case mode:
            form = "JsonLines" if mode == "lines" else "Parquet"
            columns = tuple(FileColumnConfig(name=name, type=kind) for name, kind in job.columns) or None
            return SinkConfig(files=FilesSinkConfig(url=Path(job.to).as_uri(), format=form, columns=columns))
