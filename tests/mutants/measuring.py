"""Measures one mutant: stories of the simulation, by their seeds, and the tests that it names."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.findings import Finding
from tests.mutants.planted import Mutant

#: Kind of stories of an area, for mutants that name no other one; every other area takes all of them.
KINDS = {"data_path": "region", "operator": "fleet"}
#: Most seeds of kinds whose stories take long: half a minute, where one of a fleet takes four seconds.
MOST = {"scaling": 10}
#: Seconds after which no new seed begins.
LIMIT = 900.0
#: Seconds after which a story, or the tests, hang, which counts as found.
PATIENCE = 300.0
#: Characters that are shown of tests that fail without a mutant.
SHOWN = 4_000


def kind_of(mutant: Mutant) -> str:
    """Kind of the stories that can find a mutant."""
    return mutant.stories or KINDS.get(mutant.area, "all")


def measured(tree: Path, mutant: Mutant, options: argparse.Namespace) -> Finding:
    """What stories and tests say of a mutant that is planted in a copy of the tree."""
    began = time.monotonic()
    with _planted(tree, mutant):
        found = simulate(tree, mutant, options)
        tests = "(not run)" if options.without_tests else _test(tree, mutant)
    if not mutant.file and options.without_tests:
        tests = ""
    return Finding(mutant.name, found, tests, time.monotonic() - began)


@contextmanager
def _planted(tree: Path, mutant: Mutant) -> Iterator[None]:
    """The copy of the tree with a mutant; as it is when the mutant names no file."""
    if not mutant.file:
        yield
        return
    path = tree / mutant.file
    text = path.read_text()
    path.write_text(mutant.mutated(text))
    try:
        yield
    finally:
        path.write_text(text)


def simulate(tree: Path, mutant: Mutant, options: argparse.Namespace) -> str:
    """The rule that a seed has broken; empty when none has, or when none could."""
    if mutant.hidden:
        return ""
    last = mutant.seed
    if last is not None and 0 <= last - options.start < options.seeds and (found := _tell(tree, mutant, options, last)):
        return found
    return _tell(tree, mutant, options)


def _tell(tree: Path, mutant: Mutant, options: argparse.Namespace, seed: int | None = None) -> str:
    """The rule that a seed, or the first of all that break one, has broken; empty when none has."""
    kind = kind_of(mutant)
    first, count = (options.start, min(options.seeds, MOST.get(kind, options.seeds))) if seed is None else (seed, 1)
    command = (
        *("-m", "tests.simulation", "campaign", "--kind", kind, "--enough", "1"),
        *("--seconds", str(LIMIT), "--seeds", str(count), "--start", str(first)),
        *("--workers", "1"),
    )
    status, text = _run(tree, command, LIMIT + PATIENCE)
    if status is None:
        return "hangs"
    found = re.search(r"^seed (\S+): (.+?) at [\d.]+ s", text, re.MULTILINE)
    if found is not None:
        return f"{found[2]} (seed {found[1]})"
    return f"ends with {status}" if status else ""


def _test(tree: Path, mutant: Mutant) -> str:
    """Whether the tests that it names fail; empty when they pass. Where nothing is planted, it shows what fails."""
    command = ("-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *mutant.tests)
    status, text = _run(tree, command, PATIENCE if mutant.file else LIMIT)
    if status and not mutant.file:
        print(text[-SHOWN:])
    return "hang" if status is None else "fail" if status else ""


def _run(tree: Path, command: tuple[str, ...], seconds: float) -> tuple[int | None, str]:
    """Exit status (None when it took too long) and output of a Python command in the copy."""
    paths = os.pathsep.join(str(tree / part) for part in ("operator", "worker", ""))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            (sys.executable, *command),
            cwd=tree,
            env=environment,
            timeout=seconds,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout
