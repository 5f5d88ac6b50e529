"""Measures the net: `python -m tests.mutants [NAME ...]`; 1 when a mutant was found by nobody."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.planted import ROOT, Mutant, planted

#: Parts of the tree that are neither needed nor mutated.
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "dist", ".*_cache", "__pycache__", ".hypothesis")
#: Kind of stories of an area; every other area takes all of them.
KINDS = {"data_path": "region", "operator": "fleet"}
#: Seconds after which no new seed begins.
LIMIT = 900.0
#: Seconds after which a story, or the tests, hang, which counts as found.
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Who found a mutant; empty for nobody."""

    mutant: Mutant | None
    simulation: str
    tests: str
    seconds: float

    def row(self) -> str:
        """A line of the table."""
        name = self.mutant.name if self.mutant else "(none planted)"
        return f"{name:<34} {self.simulation or 'MISSED':<34} {self.tests or 'MISSED':<10} {self.seconds:5.0f} s"


def main() -> int:
    """Apply each mutant alone, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants; all without a name")
    parser.add_argument("--seeds", type=int, default=60, help="for each")
    parser.add_argument("--without-tests", action="store_true", help="the simulation alone")
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    options = parser.parse_args()
    known = {mutant.name: mutant for mutant in planted()}
    if unknown := sorted(set(options.names) - known.keys()):
        parser.error(f"no such mutant: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [mutant for name, mutant in known.items() if not options.names or name in options.names]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        findings = [_measure(tree, mutant, options) for mutant in chosen]
    return _print_summary(findings)


def _measure(tree: Path, mutant: Mutant, options: argparse.Namespace) -> Finding:
    began, path = time.monotonic(), tree / mutant.file
    text = path.read_text()
    path.write_text(mutant.mutated(text))
    try:
        found = _simulate(tree, mutant, options)
        tests = "(not run)" if options.without_tests else _test(tree, mutant)
        finding = Finding(mutant, found, tests, time.monotonic() - began)
    finally:
        path.write_text(text)
    print(finding.row(), flush=True)
    return finding


def _simulate(tree: Path, mutant: Mutant, options: argparse.Namespace) -> str:
    """The rule that a seed has broken; empty when none has."""
    kind = KINDS.get(mutant.area, "all")
    command = (
        *("-m", "tests.simulation", "campaign", "--kind", kind, "--enough", "1"),
        *("--seconds", str(LIMIT), "--seeds", str(options.seeds), "--start", str(options.start)),
    )
    status, text = _run(tree, command, LIMIT + PATIENCE)
    if status is None:
        return "hangs"
    found = re.search(r"^seed (\S+): (\S+) at", text, re.MULTILINE)
    if found is not None:
        return f"{found[2]} (seed {found[1]})"
    return f"ends with {status}" if status else ""


def _test(tree: Path, mutant: Mutant) -> str:
    """Whether the tests of the area fail; empty when they pass."""
    command = ("-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *mutant.tests)
    status, _ = _run(tree, command, PATIENCE)
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


def _print_summary(findings: list[Finding]) -> int:
    total = len(findings)
    simulated = sum(bool(finding.simulation) for finding in findings)
    missed = [finding for finding in findings if not (finding.simulation or finding.tests)]
    print(f"\n{total} mutants: the simulation alone finds {simulated}, together with the tests {total - len(missed)}")
    for finding in findings:
        if finding.mutant is not None and not finding.simulation:
            print(f"    not by the simulation: {finding.mutant.name}: {finding.mutant.breaks}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
