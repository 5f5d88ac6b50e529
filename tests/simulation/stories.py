"""The kinds of stories, and how each is drawn, read and told.

data path   a tunnel, workers and a destination (`region`); written `17`
fleet       Kubernetes with the operator above them (`fleet`); written `fleet:17`
files       workers that publish files on a disk (`files`); written `files:17`
spark       a fleet whose existing rows Spark copies (`spark`); written `spark:17`
replicas    a fleet whose operator has two replicas (`replicas`); written `replicas:17`
scaling     a fleet whose load changes, and with it the number of workers (`scaling`); written `scaling:17`
sleeping    a fleet of which no worker runs while nothing is to be read (`sleeping`); written `sleeping:17`
leases      workers that share shards by a table of leases, with the Java library's (`leases`); written `leases:17`
replicate   users who copy a table by `ots-tunnel replicate` (`replicate`); written `replicate:17`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.simulation.apart import start
from tests.simulation.files.region import FilesRegion
from tests.simulation.files.scenario import FilesScenario
from tests.simulation.fleet.fleet import Fleet
from tests.simulation.fleet.scenario import FleetScenario
from tests.simulation.leases.region import LeasesRegion
from tests.simulation.leases.scenario import LeasesScenario
from tests.simulation.region import Region
from tests.simulation.replicas.fleet import ReplicatedFleet
from tests.simulation.replicas.scenario import ReplicatedScenario
from tests.simulation.replicate.region import ReplicateRegion
from tests.simulation.replicate.scenario import ReplicateScenario
from tests.simulation.scaling.fleet import ScalingFleet
from tests.simulation.scaling.scenario import ScalingScenario
from tests.simulation.scenario import Scenario
from tests.simulation.sleeping.fleet import SleepingFleet
from tests.simulation.sleeping.scenario import SleepingScenario
from tests.simulation.spark.fleet import SparkFleet
from tests.simulation.spark.scenario import SparkScenario
from tests.simulation.telling import Outcome, tell_out

KINDS = (
    Scenario,
    FleetScenario,
    FilesScenario,
    ReplicateScenario,
    SparkScenario,
    ReplicatedScenario,
    ScalingScenario,
    SleepingScenario,
    LeasesScenario,
)
AnyScenario = Scenario | FleetScenario | LeasesScenario


def load(what: str) -> AnyScenario:
    """A scenario by its seed (`17`, `fleet:17`), or by its file."""
    kind, colon, seed = what.rpartition(":")
    for known in KINDS:
        if seed.isdigit() and f"{kind}{colon}" == known.prefix:
            return known.of(int(seed))
    document = json.loads(Path(what).read_text())
    found: dict[str, Any] = document.get("scenario", document)
    return next(known.from_json(found) for known in KINDS if found.keys() <= set(known.__dataclass_fields__))


def tell_here(scenario: AnyScenario, keep_story: bool = False) -> Outcome:
    """Run a scenario in this process; see `tell_out`."""
    if isinstance(scenario, ReplicatedScenario):
        return tell_out(ReplicatedFleet, scenario, keep_story)
    if isinstance(scenario, SparkScenario):
        return tell_out(SparkFleet, scenario, keep_story)
    if isinstance(scenario, ScalingScenario):
        return tell_out(ScalingFleet, scenario, keep_story)
    if isinstance(scenario, SleepingScenario):
        return tell_out(SleepingFleet, scenario, keep_story)
    if isinstance(scenario, LeasesScenario):
        return tell_out(LeasesRegion, scenario, keep_story)
    if isinstance(scenario, FleetScenario):
        return tell_out(Fleet, scenario, keep_story)
    if isinstance(scenario, ReplicateScenario):
        return tell_out(ReplicateRegion, scenario, keep_story)
    if isinstance(scenario, FilesScenario):
        return tell_out(FilesRegion, scenario, keep_story)
    return tell_out(Region, scenario, keep_story)


def tell(scenario: AnyScenario, *, keep_story: bool = False) -> Outcome:
    """Run a scenario to its end, in a process of its own.

    Args:
        keep_story: whether the outcome holds the story as text.
    """
    outcome: Outcome = start(tell_here, scenario, keep_story).result()
    return outcome
