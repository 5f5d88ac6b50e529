"""Freed memory is kept where a page follows a page, and returned where a process mostly waits."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from ots_tunnel.allocator import keep_freed_memory

#: Only glibc has mallopt: elsewhere nothing is set, which has a test of its own.
OF_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")

FAULTS = """
import resource, sys
from ots_tunnel.allocator import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
def turn():
    pieces = [bytes(400_000) for _ in range(4)]
for _ in range(20):
    turn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    turn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@OF_GLIBC
def test_large_blocks_are_used_again_without_page_faults() -> None:
    faults = int(subprocess.run([sys.executable, "-c", FAULTS, "kept"], capture_output=True, check=True).stdout)

    assert faults < 1000  # without it there are ten times as many


THREADS = """
import threading
from ots_tunnel.allocator import keep_freed_memory
assert keep_freed_memory()
used, over = threading.Barrier(2), threading.Event()
def turn():
    pieces = [b"x" * (1_000_000 + number) for number in range(8)]
def work():
    turn()
    used.wait()
    over.wait()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before = resident()
for _ in range(10):
    threading.Thread(target=work).start()
    used.wait()
print(resident() - before)
over.set()
"""


@OF_GLIBC
def test_threads_use_the_memory_of_each_other_again() -> None:
    kept = int(subprocess.run([sys.executable, "-c", THREADS], capture_output=True, check=True, timeout=30).stdout)

    assert kept < 25_000_000  # without it every thread keeps its own 8 MB


SHRINKING = """
import sys
from ots_tunnel.allocator import return_freed_memory
if sys.argv[1] == "returned":
    assert return_freed_memory()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
freed = b"x" * 4_000_000
del freed  # raises the size from which a block has a mapping of its own, unless it is set
before = resident()
kept = [(b"x" * 500_000, b"y" * (600 + number)) for number in range(100)]
kept = [small for _, small in kept]
print(resident() - before)
"""


@OF_GLIBC
def test_large_blocks_between_small_ones_go_back_to_the_system() -> None:
    held = [
        int(subprocess.run([sys.executable, "-c", SHRINKING, how], capture_output=True, check=True, timeout=30).stdout)
        for how in ("by default", "returned")
    ]

    assert held[0] > 40_000_000
    assert held[1] < 5_000_000


POOL = """
import asyncio, json, sys
from pathlib import Path
from ots_tunnel.commands.run import consume
from ots_tunnel.config import load_config
from ots_tunnel.worker.status.server import StatusServer
async def started(self):
    import pyarrow
    sys.exit(pyarrow.default_memory_pool().backend_name)
StatusServer.__aenter__ = started
asyncio.run(consume(load_config(Path(sys.argv[1])), Path(sys.argv[1])))
"""


def test_a_worker_that_writes_parquet_has_the_pool_that_holds_least(tmp_path: Path) -> None:
    for name in ("accessKeyId", "accessKeySecret"):
        (tmp_path / name).write_text("x")
    source = {"endpoint": "http://127.0.0.1:9", "instance": "demo", "table": "t", "tunnelName": "t", "tunnelId": "1"}
    document = {
        "source": source | {"credentials": {"directory": str(tmp_path)}},
        "sink": {"files": {"url": f"file://{tmp_path}", "format": "Parquet"}},
    }
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(document))
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}

    command = [sys.executable, "-c", POOL, str(path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert ended.stderr.splitlines()[-1:] == ["jemalloc"]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.allocator.ctypes.CDLL", lambda _name: object())

    assert not keep_freed_memory()
