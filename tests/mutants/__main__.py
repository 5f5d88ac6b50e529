"""Measures the net: `python -m tests.mutants [NAME ...]`.

The tree is measured without a mutant first: when that fails, the table would say nothing, and it ends with status 2.
A run that was interrupted goes on where it was, as long as the tree and the options are the same. Status 1 means
that nobody found a mutant. The seeds of a mutant begin with the one that found it last time, which its file names.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from tests.mutants.findings import Finding, Record
from tests.mutants.measuring import kind_of, measured
from tests.mutants.planted import Mutant, planted
from tests.mutants.trees import Trees

#: What the name of a tree without a mutant begins with.
BASELINE = "(none"


def main() -> int:
    """Measure the tree as it is, then with each mutant alone, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants; all without a name")
    parser.add_argument("--area", help="mutants of one file")
    parser.add_argument("--seeds", type=int, default=60, help="for each, fewer where stories take long")
    parser.add_argument("--without-tests", action="store_true", help="the simulation alone")
    parser.add_argument("--start", type=int, default=1, help="the first seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants at a time")
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
        trees = Trees(Path(folder), options.workers)
        if any(finding.is_found for finding in measure(record, trees, baselines(chosen), options)):
            print("the tree itself fails: what a mutant breaks cannot be told from it")
            return 2
        found = {finding.name: finding for finding in measure(record, trees, chosen, options)}
    return _print_summary([found[mutant.name] for mutant in chosen], {mutant.name: mutant for mutant in chosen})


def baselines(chosen: list[Mutant]) -> list[Mutant]:
    """The tree without a mutant: the stories and all tests of the chosen ones, by their area and kind of stories."""
    tests: dict[tuple[str, str], dict[str, None]] = {}
    for mutant in chosen:
        tests.setdefault((mutant.area, kind_of(mutant)), {}).update(dict.fromkeys(mutant.tests))
    return [
        Mutant(f"{BASELINE} in {area}, {kind})", "", "", "", "", tuple(paths), area, stories=kind)
        for (area, kind), paths in tests.items()
    ]


def measure(record: Record, trees: Trees, mutants: list[Mutant], options: argparse.Namespace) -> Iterator[Finding]:
    """What the record says of each mutant, or a measurement that it keeps; several at a time, each in its own copy."""
    with ThreadPoolExecutor(options.workers) as pool:
        new = []
        for mutant in mutants:
            if (known := record.known.get(mutant.name)) is None:
                new.append(pool.submit(trees.use, partial(measured, mutant=mutant, options=options)))
            else:
                print(known.row(), flush=True)
                yield known
        try:
            for done in as_completed(new):
                finding = done.result()
                if not finding.name.startswith(BASELINE) or not finding.is_found:
                    # a tree that fails is measured again: it may have been the machine
                    record.keep(finding)
                print(finding.row(), flush=True)
                yield finding
        finally:
            pool.shutdown(cancel_futures=True)


def _print_summary(findings: list[Finding], mutants: dict[str, Mutant]) -> int:
    total = len(findings)
    simulated = sum(bool(finding.simulation) for finding in findings)
    missed = [finding for finding in findings if not finding.is_found]
    print(f"\n{total} mutants: the simulation alone finds {simulated}, together with the tests {total - len(missed)}")
    for finding in findings:
        if not finding.simulation:
            by = "not by the simulation" if finding not in missed else "by nobody"
            mutant = mutants[finding.name]
            why = f" (no story is told: {mutant.hidden})" if mutant.hidden else ""
            print(f"    {by}: {finding.name}: {mutant.breaks}{why}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
