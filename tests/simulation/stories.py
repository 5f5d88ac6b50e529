"""The two kinds of stories, and how each is drawn, read and told.

data path   a tunnel, workers and a destination (`region`); written `17`
fleet       Kubernetes with the operator above them (`fleet`); written `fleet:17`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.simulation.apart import start
from tests.simulation.fleet.fleet import tell_fleet_here
from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.region import Outcome, tell_story_here
from tests.simulation.scenario import Scenario

FLEET = "fleet"
AnyScenario = Scenario | FleetScenario


def load(what: str) -> AnyScenario:
    """A scenario by its seed (`17`, `fleet:17`), or by its file."""
    kind, _, seed = what.rpartition(":")
    if seed.isdigit() and kind in ("", FLEET):
        return FleetScenario.of(int(seed)) if kind else Scenario.of(int(seed))
    document = json.loads(Path(what).read_text())
    found: dict[str, Any] = document.get("scenario", document)
    return FleetScenario.from_json(found) if "acts" in found else Scenario.from_json(found)


def name_of(scenario: AnyScenario) -> str:
    """How the scenario of a seed is written."""
    return f"{FLEET}:{scenario.seed}" if isinstance(scenario, FleetScenario) else str(scenario.seed)


def tell_here(scenario: AnyScenario, keep_story: bool = False) -> Outcome:
    """Run a scenario in this process, which has to end without a clean-up afterwards (see `apart`)."""
    if isinstance(scenario, FleetScenario):
        return tell_fleet_here(scenario, keep_story)
    return tell_story_here(scenario, keep_story)


def tell(scenario: AnyScenario, *, keep_story: bool = False) -> Outcome:
    """Run a scenario to its end, in a process of its own.

    Args:
        keep_story: whether the outcome holds the story as text.
    """
    outcome: Outcome = start(tell_here, scenario, keep_story).result()
    return outcome
