"""Compares Auto with a fixed fleet of the right size and with an HPA on lag: the same loads, seeds and faults.

A story takes half a minute of a core. With --keep the outcomes are written to a file as they come, and those that it
has are not told again, so that a run may be ended and go on; the file is of one version of the tree: delete it after a
change.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.simulation.apart import Child, finished, start
from tests.simulation.machine.seams import install_seams
from tests.simulation.scaling.figures import Figures, Kept
from tests.simulation.scaling.loads import LOADS, RIGHT
from tests.simulation.scaling.scenario import ScalingScenario
from tests.simulation.scaling.table import broken, lines
from tests.simulation.service import install_ledger
from tests.simulation.stories import tell_here

#: Who chooses the number of workers; Auto and the HPA begin with 2.
CHOOSERS = ("Auto", "HPA", "Fixed")


def main(arguments: list[str]) -> int:
    """Tell the stories and print the table; 1 where a promise was broken, or Auto is not worth its changes."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.scaling", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="stories for each way to choose the number; default 20")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--load", choices=LOADS, help="this one alone")
    parser.add_argument("--chooser", choices=CHOOSERS, help="this one alone")
    parser.add_argument("--parallel", type=int, default=1, help="stories at a time; default 1")
    parser.add_argument("--keep", type=Path, help="file of outcomes")
    options = parser.parse_args(arguments)
    install_ledger()
    install_seams()
    wanted = [
        scenario
        for seed in range(options.first, options.first + options.seeds)
        for scenario in _scenarios(seed)
        if options.load in (None, scenario.load) and options.chooser in (None, scenario.chooser)
    ]
    kept = Kept(options.keep)
    for figures in _told([scenario for scenario in wanted if scenario not in kept], options.parallel):
        print(figures, flush=True)
        kept.add(figures)
    found = [kept.of(scenario) for scenario in wanted]
    print("", *lines(found), sep="\n")
    wrong = [*(f"{each.name}: {each.violation}" for each in found if each.violation), *broken(found)]
    for text in wrong:
        print(f"BROKEN: {text}", flush=True)
    return int(bool(wrong))


def _scenarios(seed: int) -> list[ScalingScenario]:
    drawn = ScalingScenario.of(seed)
    first = {"Fixed": RIGHT[drawn.load]}
    return [replace(drawn, chooser=chooser, replicas=first.get(chooser, drawn.replicas)) for chooser in CHOOSERS]


def _told(scenarios: list[ScalingScenario], parallel: int) -> Iterator[Figures]:
    """The figures of stories, each in a process of its own, as they end."""
    running: set[Child] = set()
    while scenarios or running:
        while scenarios and len(running) < parallel:
            running.add(start(tell_here, scenarios.pop(0)))
        for child in finished(running):
            running.discard(child)
            yield Figures.of(child.result())
