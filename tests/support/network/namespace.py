"""Programs in a network namespace of their own, where packets can be dropped without harm to the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lacking import lack

ROOT = Path(__file__).parents[3]
#: Debian keeps iptables and ip there, which is not on every PATH.
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_TRIAL = "ip link set lo up && iptables -A OUTPUT -p tcp --dport 1 -m statistic --mode random --probability 0.5 -j DROP"


def need_lost_packets() -> None:
    """End the test where packets cannot be dropped: programs are missing, or the kernel allows no namespace."""
    for program in ("unshare", "ip", "iptables"):
        if shutil.which(program, path=PATH) is None:
            lack("network", f"{program} is not installed (tests/cluster/packages.sh network installs it)")
    trial = subprocess.run(
        ("unshare", "-n", "sh", "-c", _TRIAL),
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": PATH},
        check=False,
    )
    if trial.returncode:
        # nothing installs it: it takes root, and a kernel with these modules
        pytest.skip(f"no network namespace with iptables: {trial.stderr.strip()[:200]}")


def run_apart(module: str, *arguments: str, seconds: float) -> str:
    """Run a module in a namespace with a loopback alone; returns its output, and fails with it."""
    command = f"ip link set lo up && exec {sys.executable} -m {module} {' '.join(arguments)}"
    ended = subprocess.run(
        ("unshare", "-n", "sh", "-c", command),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PATH": PATH, "PYTHONPATH": f"{ROOT}/worker:{ROOT}/operator:{ROOT}"},
        timeout=seconds,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout
