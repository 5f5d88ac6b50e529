"""The command line of the simulation."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

from tests.simulation.campaign import ENOUGH, FAILURES, run_campaign
from tests.simulation.first_seed import first_seed
from tests.simulation.machine.seams import install_seams
from tests.simulation.service import install_ledger
from tests.simulation.shrink import shrink
from tests.simulation.stories import AnyScenario, load, tell
from tests.simulation.telling import Outcome
from tests.support.story_kinds import KINDS

#: Events that are printed of a long story.
LAST_EVENTS = 400


def main(arguments: list[str]) -> int:
    """Run a command; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    replay = commands.add_parser("replay", help="tell the story of a seed or of a file; shrink it if it fails")
    replay.add_argument("what", help="a seed (17, or fleet:17), or a file of a scenario")
    replay.add_argument("--steps", type=int, help="with the first so many faults only")
    replay.add_argument("--whole", action="store_true", help="print the whole story")
    replay.add_argument("--shrink-seconds", type=float, default=120.0, help="0 does not shrink")
    campaign = commands.add_parser("campaign", help="many seeds for a time")
    campaign.add_argument("--seconds", type=float, default=60.0)
    campaign.add_argument(
        "--start", help="the first seed, or `tree`: one for each committed tree; the default differs from run to run"
    )
    campaign.add_argument("--workers", type=int)
    campaign.add_argument("--seeds", type=int, default=sys.maxsize, help="most of them")
    campaign.add_argument("--kind", choices=KINDS, default="all", help="of stories")
    campaign.add_argument("--enough", type=int, default=ENOUGH, help="failing seeds after which it ends")
    verdict = commands.add_parser("verdict", help="one line of JSON per scenario: the broken rule, or null")
    verdict.add_argument("what", nargs="+", help="seeds, or files of scenarios")
    options = parser.parse_args(arguments)
    install_ledger()
    install_seams()
    if options.command == "replay":
        return _replay(options)
    if options.command == "verdict":
        return _verdicts(options.what)
    try:
        first = first_seed(options.start)
    except ValueError as error:
        parser.error(str(error))
    print(f"seeds from {first} on; `--start {first}` runs the same ones", flush=True)
    tally = run_campaign(
        first, options.seconds, options.workers, kind=options.kind, enough=options.enough, seeds=options.seeds
    )
    print("\n".join(tally.lines()), flush=True)
    return int(bool(tally.failures))


def _replay(options: argparse.Namespace) -> int:
    scenario = load(options.what)
    if options.steps is not None:
        happenings = scenario.happenings
        scenario = replace(scenario, **{happenings: getattr(scenario, happenings)[: options.steps]})
    outcome = tell(scenario, keep_story=True)
    if outcome.violation is not None and options.shrink_seconds:
        outcome = _shrunk(outcome, options.shrink_seconds)
    _print(outcome, whole=options.whole)
    return int(outcome.violation is not None)


def _shrunk(outcome: Outcome, seconds: float) -> Outcome:
    assert outcome.violation is not None
    rule = outcome.violation.rule

    def fails(candidate: AnyScenario) -> bool:
        found = tell(candidate).violation
        return found is not None and found.rule == rule

    scenario = _until(outcome.scenario, outcome.violation.at)
    print(f"{outcome.violation}\nshrinking for at most {seconds:.0f} s", flush=True)
    smaller = shrink(scenario if fails(scenario) else outcome.scenario, fails, seconds=seconds)
    FAILURES.mkdir(parents=True, exist_ok=True)
    path = FAILURES / f"shrunk-{smaller.name.replace(':', '-')}.json"
    path.write_text(json.dumps({"why": str(outcome.violation), "scenario": smaller.to_json()}, indent=1) + "\n")
    print(f"the shrunk scenario is {path}; in tests/simulation/regressions every test runs it", flush=True)
    return tell(smaller, keep_story=True)


def _until(scenario: AnyScenario, seconds: float) -> AnyScenario:
    """The same story without what would happen after a time."""
    name = scenario.happenings
    return replace(scenario, **{name: tuple(event for event in getattr(scenario, name) if event.at <= seconds)})


def _print(outcome: Outcome, *, whole: bool) -> None:
    print(outcome.scenario)
    for event in getattr(outcome.scenario, outcome.scenario.happenings):
        print(f"    {event.at:8.3f} s  {event}")
    left_out = 0 if whole else max(0, len(outcome.story) - LAST_EVENTS)
    if left_out:
        print(f"... {left_out} events, see --whole")
    print(*outcome.story[left_out:], sep="\n")
    print(", ".join(f"{count} {name}" for name, count in sorted(outcome.counts.items())))
    print(f"{outcome.seconds:.0f} s simulated in {outcome.wall:.1f} s; story {outcome.digest}")
    print(f"BROKEN: {outcome.violation}" if outcome.violation else "no promise is broken", flush=True)


def _verdicts(whats: list[str]) -> int:
    failed = False
    for what in whats:
        outcome = tell(load(what))
        violation = outcome.violation
        failed = failed or violation is not None
        line = {"what": what, "rule": violation.rule if violation else None, "text": str(violation or "")}
        print(json.dumps({**line, "digest": outcome.digest, "seconds": outcome.seconds}), flush=True)
    return int(failed)
