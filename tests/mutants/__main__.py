"""Measures the net: `python -m tests.mutants [NAME ...]`.

The tree is measured without a mutant first: when that fails, the table would say nothing, and it ends with status 2.
A run that was interrupted goes on where it was, as long as the tree and the options are the same. Status 1 means
that nobody found a mutant. The seeds of a mutant begin with the one that found it last time, which its file names.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.findings import Finding, Record
from tests.mutants.planted import ROOT, Mutant, planted

#: Parts of the tree that are neither needed nor mutated.
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "dist", ".*_cache", "__pycache__", ".hypothesis")
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


def main() -> int:
    """Measure the tree as it is, then with each mutant alone, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants; all without a name")
    parser.add_argument("--area", help="mutants of one file")
    parser.add_argument("--seeds", type=int, default=60, help="for each, fewer where stories take long")
    parser.add_argument("--without-tests", action="store_true", help="the simulation alone")
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="stories at a time")
    parser.add_argument("--fresh", action="store_true", help="measure again what an interrupted run has measured")
    options = parser.parse_args()
    known = {mutant.name: mutant for mutant in planted() if options.area in (None, mutant.area)}
    if unknown := sorted(set(options.names) - known.keys()):
        parser.error(f"no such mutant: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [mutant for name, mutant in known.items() if not options.names or name in options.names]
    record = Record.of_tree(options)
    if options.fresh:
        record.forget()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        for mutant in baselines(chosen):
            if _finding(record, tree, mutant, options).is_found:
                print("the tree itself fails: what a mutant breaks cannot be told from it")
                return 2
        findings = [_finding(record, tree, mutant, options) for mutant in chosen]
    return _print_summary(findings, {mutant.name: mutant.breaks for mutant in chosen})


def baselines(chosen: list[Mutant]) -> list[Mutant]:
    """The tree without a mutant: the stories and all tests of the chosen ones, by their area and kind of stories."""
    tests: dict[tuple[str, str], dict[str, None]] = {}
    for mutant in chosen:
        tests.setdefault((mutant.area, _kind(mutant)), {}).update(dict.fromkeys(mutant.tests))
    return [
        Mutant(f"(none in {area}, {kind})", "", "", "", "", tuple(paths), area, stories=kind)
        for (area, kind), paths in tests.items()
    ]


def _kind(mutant: Mutant) -> str:
    """Kind of the stories that can find a mutant."""
    return mutant.stories or KINDS.get(mutant.area, "all")


def _finding(record: Record, tree: Path, mutant: Mutant, options: argparse.Namespace) -> Finding:
    """What the record says of a mutant, or a measurement that it keeps."""
    finding = record.known.get(mutant.name)
    if finding is None:
        finding = _measure(tree, mutant, options)
        if mutant.file or not finding.is_found:
            # a tree that fails is measured again: it may have been the machine
            record.keep(finding)
    print(finding.row(), flush=True)
    return finding


def _measure(tree: Path, mutant: Mutant, options: argparse.Namespace) -> Finding:
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
    """The rule that a seed has broken; empty when none has."""
    last = mutant.seed
    if last is not None and 0 <= last - options.start < options.seeds and (found := _tell(tree, mutant, options, last)):
        return found
    return _tell(tree, mutant, options)


def _tell(tree: Path, mutant: Mutant, options: argparse.Namespace, seed: int | None = None) -> str:
    """The rule that a seed, or the first of all that break one, has broken; empty when none has."""
    kind = _kind(mutant)
    first, count = (options.start, min(options.seeds, MOST.get(kind, options.seeds))) if seed is None else (seed, 1)
    command = (
        *("-m", "tests.simulation", "campaign", "--kind", kind, "--enough", "1"),
        *("--seconds", str(LIMIT), "--seeds", str(count), "--start", str(first)),
        *("--workers", str(options.workers)),
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


def _print_summary(findings: list[Finding], breaks: dict[str, str]) -> int:
    total = len(findings)
    simulated = sum(bool(finding.simulation) for finding in findings)
    missed = [finding for finding in findings if not finding.is_found]
    print(f"\n{total} mutants: the simulation alone finds {simulated}, together with the tests {total - len(missed)}")
    for finding in findings:
        if not finding.simulation:
            by = "not by the simulation" if finding not in missed else "by nobody"
            print(f"    {by}: {finding.name}: {breaks[finding.name]}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
