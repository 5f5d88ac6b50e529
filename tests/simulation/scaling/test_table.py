"""The table of the comparison, and what Auto has to reach in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.simulation.scaling.figures import Figures, Kept
from tests.simulation.scaling.scenario import ScalingScenario
from tests.simulation.scaling.table import broken, lines


def figures(chooser: str, **changes: Any) -> Figures:
    usual = {"name": "scaling:0", "load": "steady", "replicas": 2, "faults": 0, "changes": 2, "turns": 1}
    rest = {"late": 0.05, "workers": 3.0, "violation": "", "wall": 20.0}
    return Figures(chooser=chooser, **{**usual, **rest, **changes})


FIXED = figures("Fixed", replicas=3, changes=0, turns=0, late=0.0)
HPA = figures("HPA", changes=30, late=0.3)


def test_a_line_has_the_means_and_the_worst_of_the_stories() -> None:
    found = [figures("Auto", changes=2, late=0.02), FIXED, figures("Auto", name="scaling:4", changes=5, late=0.04)]

    head, *rows = lines(found)

    assert head.split()[4:] == ["stories", "changes", "most", "turns", "late", "worst", "workers"]
    assert [row.split() for row in rows] == [
        ["steady", "fixed", "3", "1", "0.0", "0", "0.0", "0.0%", "0.0%", "3.0"],
        ["steady", "Auto", "2", "3.5", "5", "1.0", "3.0%", "4.0%", "3.0"],
    ]


def test_auto_that_is_little_late_and_changes_little_is_fine() -> None:
    assert list(broken([FIXED, HPA, figures("Auto")])) == []


def test_auto_is_judged_beside_a_fixed_fleet_and_beside_the_hpa() -> None:
    late, restless = figures("Auto", late=0.4), figures("Auto", changes=31)

    assert [text.partition(":")[0] for text in broken([FIXED, HPA, late])] == ["steady", "steady"]
    assert list(broken([FIXED, late])) == ["steady: Auto is late for 40.0% of the time, a fixed fleet for 0.0%"]
    assert list(broken([FIXED, HPA, restless])) == [
        "steady: Auto changes the number 31.0 times, an HPA on lag 30.0 times"
    ]


def test_loads_are_judged_apart() -> None:
    assert list(broken([HPA, figures("Auto", load="step", changes=40)])) == []


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    path, scenario = tmp_path / "of" / "stories.jsonl", ScalingScenario.of(0)
    Kept(path).add(figures("Auto"))

    again = Kept(path)

    assert scenario in again
    assert again.of(scenario) == figures("Auto")
    assert ScalingScenario.of(4) not in again
