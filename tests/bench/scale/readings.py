"""What the operator costs: its calls by the API server's audit log, its memory and CPU time by the kernel."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.emulator_target import Target

READS = frozenset({"get", "list", "watch"})
#: Seconds in which the API server writes an answered request to its log.
FLUSH_SECONDS = 1.0


@dataclass
class Calls:
    """The calls of one user in a part of the audit log, without those about Leases."""

    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return ", ".join(f"{count} x {call}" for call, count in (self.writes + self.reads).most_common(12))


class AuditLog:
    """The part of the audit log since the construction, or since `restart`."""

    def __init__(self, path: Path, user: str) -> None:
        self._path = path
        self._user = user
        self._offset = 0
        self.restart()

    def restart(self) -> None:
        """Begin anew with the next call."""
        time.sleep(FLUSH_SECONDS)
        self._offset = self._path.stat().st_size if self._path.exists() else 0

    def calls(self) -> Calls:
        """The calls since then; a watch counts when it is opened."""
        time.sleep(FLUSH_SECONDS)
        found, seen = Calls(), set()
        for entry in self._entries():
            is_known = entry["auditID"] in seen
            seen.add(entry["auditID"])
            # the end of a watch that was opened before is no call
            is_end = entry["verb"] == "watch" and entry["stage"] == "ResponseComplete"
            if is_known or is_end or entry["user"]["username"] != self._user:
                continue
            about = entry.get("objectRef") or {}
            resource = "/".join(filter(None, (about.get("resource") or entry["requestURI"], about.get("subresource"))))
            if resource != "leases":
                (found.reads if entry["verb"] in READS else found.writes)[f"{entry['verb']} {resource}"] += 1
        return found

    def _entries(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as lines:
            lines.seek(self._offset)
            for line in lines:
                if line.endswith(b"\n"):
                    yield json.loads(line)


@dataclass(frozen=True)
class Used:
    """Memory and CPU of a process between two moments."""

    resident_mb: float
    peak_mb: float
    cores: float


class Usage:
    """Memory and CPU of a process from the construction on."""

    def __init__(self, pid: int) -> None:
        self._target = Target(pid, 0)
        self._began, self._cpu = time.monotonic(), self._target.cpu_seconds()

    def read(self) -> Used:
        """What it has used since."""
        cores = (self._target.cpu_seconds() - self._cpu) / (time.monotonic() - self._began)
        status = Path(f"/proc/{self._target.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        return Used(self._target.resident_bytes() / 1e6, peak * 1024 / 1e6, cores)


class Neighbours:
    """CPU of the programs that share the cores with the operator, from the construction on.

    Args:
        folder: of the API server, with a file for the id of each of its processes.
    """

    def __init__(self, folder: Path) -> None:
        pids = {path.stem: int(path.read_text().split()[0]) for path in sorted(folder.glob("*.pid"))}
        self._usages = {name: Usage(pid) for name, pid in (pids | {"service, workers, kubelets": os.getpid()}).items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} {usage.read().cores:.2f}" for name, usage in self._usages.items())
