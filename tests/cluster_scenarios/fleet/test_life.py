"""The life of one object on a real cluster: installed, scaled, rolled, with another key, suspended; always equal."""

from __future__ import annotations

import pytest

from tests.cluster_scenarios.fleet.accidents import refused_key
from tests.cluster_scenarios.fleet.copy import Copy
from tests.cluster_scenarios.fleet.fleet import FORMER_KEY, LATER_KEY, Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE
from tests.demo.environment import RELEASE
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.long,
    pytest.mark.timeout(900),
]


@pytest.mark.lasts(90)
def test_an_installed_chart_serves_an_object_that_is_applied(fleet: Fleet, copy: Copy) -> None:
    home = ("-n", fleet.scenario.operator_namespace)
    with fleet.step("helm test"):
        fleet.kube.helm("test", RELEASE, *home, "--timeout", "120s")
    with fleet.step("changes are copied"), fleet.writing() as writer:
        wait_until(lambda: writer.total > 500, 60, "changes are written", pause=PAUSE)
        copy.until("rows move", lambda status: status.get("throughput", {}).get("rowsPerSecond"))

    copy.assert_equal()


@pytest.mark.lasts(120)
def test_scaling_to_four_and_back_to_two(fleet: Fleet, copy: Copy) -> None:
    with fleet.writing():
        with fleet.step("from two to one"):
            copy.edit(replicas=1)
            copy.until_at_rest(workers=1)
        with fleet.step("from one to four"):
            copy.edit(replicas=4)
            copy.tunnel.until_spread(4)
            copy.until_at_rest(workers=4)
        with fleet.step("from four to two"):
            copy.edit(replicas=2)
            copy.until_at_rest(workers=2)
            copy.tunnel.until_spread(2)

    copy.assert_equal()


@pytest.mark.lasts(75)
def test_a_rolling_change_under_load_leaves_no_moment_without_both_workers(fleet: Fleet, copy: Copy) -> None:
    former, ready = set(copy.restarts()), []

    def is_rolled() -> bool:
        ready.append(copy.status().get("readyReplicas", 0))
        pods = set(copy.restarts())
        return len(pods) == 2 and not pods & former

    with fleet.step("the workers are replaced one by one"), fleet.writing():
        copy.edit(workers={"lanesPerChannel": 4})
        wait_until(is_rolled, 180, "both workers are new", pause=PAUSE)
        copy.until_at_rest(workers=2)

    assert min(ready) >= 2, ready
    copy.assert_equal()


@pytest.mark.lasts(60)
def test_a_rotated_secret_restarts_nothing(fleet: Fleet, copy: Copy) -> None:
    before = copy.restarts()

    with fleet.writing():
        with fleet.step("the Secret gets another key, which reaches every worker's files"):
            copy.set_key(LATER_KEY)
            wait_until(
                lambda: all(copy.mounted_key(pod) == LATER_KEY[0] for pod in before), 150, "it is there", pause=PAUSE
            )
            copy.tunnel.until_delivered(500)  # a worker looks at its files once a second
        with fleet.step("the service refuses the former key"), refused_key(fleet, FORMER_KEY[0]):
            copy.tunnel.until_delivered(2000)
            copy.until_at_rest(workers=2)

    assert copy.restarts() == before
    copy.assert_equal()


@pytest.mark.lasts(60)
def test_suspended_and_resumed(fleet: Fleet, copy: Copy) -> None:
    with fleet.writing():
        with fleet.step("suspended"):
            copy.edit(suspend=True)
            copy.until("it is suspended", lambda _: copy.condition("Suspended")[0] == "True")
            wait_until(lambda: not copy.pods(), 60, "no worker is left", pause=PAUSE)
            assert (copy.tunnel.found() or {})["clients"] == []
        with fleet.step("resumed"):
            copy.edit(suspend=False)
            copy.until_at_rest(workers=2)

    copy.assert_equal()
