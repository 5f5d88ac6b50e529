"""Paths that lose packets, to a port of this namespace's loopback; `namespace` runs programs in one."""

from __future__ import annotations

import enum
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


class Path(enum.Enum):
    """How a path is broken: which packets are lost."""

    DARK = ("--dport", "--sport"), ()
    HALF_OPEN_THERE = ("--dport",), ()
    HALF_OPEN_BACK = ("--sport",), ()
    SLOW = ("--dport", "--sport"), ("-m", "statistic", "--mode", "random", "--probability", "0.5")


def drop(path: Path, port: int) -> None:
    """Begin to lose packets to or from a port."""
    _rules("-A", path, port)


def pass_on(path: Path, port: int) -> None:
    """Lose none any more."""
    _rules("-D", path, port)


@contextmanager
def broken(path: Path, port: int) -> Iterator[None]:
    """Lose packets inside the block."""
    drop(path, port)
    try:
        yield
    finally:
        pass_on(path, port)


def _rules(what: str, path: Path, port: int) -> None:
    directions, chance = path.value
    for direction in directions:
        rule = ("iptables", what, "OUTPUT", "-p", "tcp", direction, str(port), *chance, "-j", "DROP")
        subprocess.run(rule, check=True)
