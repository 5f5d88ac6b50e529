"""Freed memory is kept: the page after a page brings no page faults."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from ots_tunnel.worker.allocator import keep_freed_memory

FAULTS = """
import resource, sys
from ots_tunnel.worker.allocator import keep_freed_memory
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_large_blocks_are_used_again_without_page_faults() -> None:
    faults = int(subprocess.run([sys.executable, "-c", FAULTS, "kept"], capture_output=True, check=True).stdout)

    assert faults < 1000  # without it there are ten times as many


THREADS = """
import threading
from ots_tunnel.worker.allocator import keep_freed_memory
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_threads_use_the_memory_of_each_other_again() -> None:
    kept = int(subprocess.run([sys.executable, "-c", THREADS], capture_output=True, check=True, timeout=30).stdout)

    assert kept < 25_000_000  # without it every thread keeps its own 8 MB


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel.worker.allocator.ctypes.CDLL", lambda _name: object())

    assert not keep_freed_memory()
