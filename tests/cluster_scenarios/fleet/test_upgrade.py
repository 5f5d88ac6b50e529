"""The chart of the last release and the present one, one after the other, under an object whose table changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster_scenarios.fleet.accidents import until_operator_leads
from tests.cluster_scenarios.fleet.conftest import MakeCopy
from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE
from tests.demo.environment import CHART, RELEASE, install_operator
from tests.demo.kube import DemoError
from tests.support.operator.released import released_chart
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.long,
    pytest.mark.timeout(600),
]

#: Reasons of an operator of this release whose definition, or whose rights, are those of the last one.
OUTDATED = ("CrdOutdated", "ApiServerRefused")


@pytest.mark.lasts(120)
def test_workers_go_on_from_the_last_release_to_this_one_and_back(
    fleet: Fleet, make_copy: MakeCopy, tmp_path: Path
) -> None:
    released, copy = released_chart(tmp_path), make_copy("upgraded")
    home = ("-n", fleet.scenario.operator_namespace)
    with fleet.step("the chart and the definition of the last release"):
        install_operator(fleet.kube, fleet.scenario, fleet.images, fleet.story, released)
        until_operator_leads(fleet)
        _until_known(fleet, "rateLimit", False)
    with fleet.step("an object of that release"):
        copy.apply(replicas=2)
        copy.until("it says what is older than this operator", lambda _: copy.condition("Ready")[1] in OUTDATED)
    with fleet.writing():
        with fleet.step("the present chart"):
            install_operator(fleet.kube, fleet.scenario, fleet.images, fleet.story)
            until_operator_leads(fleet)
            _until_known(fleet, "rateLimit", True)
            copy.until_at_rest(workers=2)
        before = copy.restarts()
        with fleet.step("back to the last release"):
            fleet.kube.helm("rollback", RELEASE, "0", *home, "--wait", "--timeout", "120s")
            _until_known(fleet, "rateLimit", False)
            copy.until("it says what is older than this operator", lambda _: copy.condition("Ready")[1] in OUTDATED)
            copy.tunnel.until_delivered(1000)
        with fleet.step("the present chart again"):
            install_operator(fleet.kube, fleet.scenario, fleet.images, fleet.story)
            until_operator_leads(fleet)
            copy.until_at_rest(workers=2)

    assert copy.restarts() == before
    copy.assert_equal()
    with fleet.writing(), fleet.step("a release with another pod template replaces the workers"):
        values = ("--reuse-values", "--set", "image.pullPolicy=Never", "--set", "operator.rolloutBudget=1")
        fleet.kube.helm("upgrade", RELEASE, str(CHART), *home, *values, "--wait", "--timeout", "120s")
        wait_until(
            lambda: len(pods := copy.restarts()) == 2 and not pods.keys() & before.keys(),
            180,
            "both are new",
            pause=PAUSE,
        )
        copy.until_at_rest(workers=2)

    copy.assert_equal()


def _until_known(fleet: Fleet, field: str, is_known: bool) -> None:
    """Wait until the API server serves the definition with, or without, a field of `spec.source`."""

    def look() -> bool:
        try:
            fleet.kube.kubectl("explain", f"tablestoretunnels.spec.source.{field}")
        except DemoError:
            return not is_known
        return is_known

    wait_until(look, 60, f"spec.source.{field} is known: {is_known}", pause=PAUSE)
