"""How a measurement begins: its options, the two cores that it needs, and the lines that tell how far it is."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ots_tunnel.protocol.plainbuffer.compiled import native
from tests.support.programs.go_program import GoUnavailable
from tests.support.programs.java_program import JavaUnavailable

Programs = TypeVar("Programs")


class MachineUnfit(Exception):
    """This machine cannot measure; the text says what it lacks."""


def parser_of(description: str | None, names: Sequence[str], minutes: float) -> argparse.ArgumentParser:
    """The options that measurements in rounds have.

    Args:
        description: its first line is shown.
        names: what can be measured.
        minutes: that all rounds take at most by default.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each measurement; medians are shown (default 5)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=minutes,
        help=f"no round begins that would end later (default {minutes:g}); one round at least",
    )
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="what to measure (default all)")
    parser.add_argument("--quick", action="store_true", help="one short round as a trial: its figures are not kept")
    parser.add_argument("--output", type=Path, default=Path("bench.json"))
    return parser


def options_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of this process's command line; ends it where they are wrong."""
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.quick:
        options.rounds = 1
    return options


def two_cores() -> tuple[int, int]:
    """A core for what the workers talk to, and one for the workers.

    Raises:
        MachineUnfit: there is one core only, or no compiled codec.
    """
    if native is None:
        raise MachineUnfit("the compiled codec is missing: build the package on a machine with a compiler")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise MachineUnfit("two cores are needed: one for the emulator, one for the worker")
    return cores[0], cores[1]


def built(build: Callable[[], Programs]) -> Programs:
    """The vendor's workers, which are built where they are missing.

    Raises:
        MachineUnfit: this machine has no Go or no Java, or does not reach what they need.
    """
    try:
        return build()
    except (GoUnavailable, JavaUnavailable) as reason:
        raise MachineUnfit(f"one of the vendor's workers cannot be built: {reason}") from reason


def say(text: str) -> None:
    """Print a line with the time on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
