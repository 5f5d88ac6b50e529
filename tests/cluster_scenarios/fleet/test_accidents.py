"""Accidents on a real cluster: workers, operator and API server killed, frozen, away; both tables stay equal."""

from __future__ import annotations

import time

import pytest

from tests.cluster_scenarios.fleet.accidents import (
    api_server_away,
    frozen_worker,
    kill_operator,
    kill_worker,
    silent_service,
)
from tests.cluster_scenarios.fleet.copy import Copy
from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.long,
    pytest.mark.timeout(900),
]

MINUTE = 60
#: Seconds within which the channels of a worker that is gone have other owners: its heartbeat timeout, two heartbeats
#: (docs/guarantees.md), and the looks of this test.
RECOVERY = 15 + 2 * 5 + 10


@pytest.mark.lasts(60)
def test_a_killed_worker_loses_its_channels_to_the_living(fleet: Fleet, copy: Copy) -> None:
    victim, client = _one_worker(copy)

    with fleet.step("a worker is killed"), fleet.writing():
        kill_worker(fleet, victim)
        copy.tunnel.until_left_by(client, RECOVERY)
        copy.until_at_rest(workers=2)

    assert copy.restarts()[victim] >= 1
    copy.assert_equal()


@pytest.mark.lasts(75)
def test_a_frozen_worker_writes_nothing_when_it_wakes(fleet: Fleet, copy: Copy) -> None:
    victim, client = _one_worker(copy)

    with fleet.step("a worker is frozen"), fleet.writing():
        with frozen_worker(fleet, victim):
            copy.tunnel.until_left_by(client, RECOVERY)
        copy.until_at_rest(workers=2)
        copy.tunnel.until_spread(2)

    copy.assert_equal()


@pytest.mark.lasts(60)
def test_workers_go_on_while_the_api_server_is_away(fleet: Fleet, copy: Copy) -> None:
    before = copy.restarts()

    with fleet.writing():
        with fleet.step("the API server is killed"), api_server_away(fleet):
            copy.tunnel.until_delivered(4000)  # for twenty seconds: the life of the operator's Lease ends meanwhile
        with fleet.step("an edit is followed after it"):
            copy.edit(monitoring={"lagDegradedSeconds": 901})
            copy.until_at_rest(workers=2)

    assert copy.restarts() == before
    copy.assert_equal()


@pytest.mark.lasts(100)
def test_a_service_that_refuses_every_call_for_a_minute(fleet: Fleet, copy: Copy) -> None:
    with fleet.writing():
        with fleet.step("the service refuses every call for a minute"):
            fleet.admin.post("/faults", unavailable=MINUTE)
            copy.until("the object does not call itself ready", lambda _: copy.condition("Ready")[0] != "True", MINUTE)
        with fleet.step("it comes back"):
            copy.until_at_rest(workers=2)

    copy.assert_equal()


@pytest.mark.lasts(120)
def test_a_service_that_does_not_answer_for_a_minute(fleet: Fleet, copy: Copy) -> None:
    before = copy.restarts()

    with fleet.writing():
        with fleet.step("the service does not answer for a minute"), silent_service(fleet):
            begin = time.monotonic()
            copy.until("the object does not call itself ready", lambda _: copy.condition("Ready")[0] != "True", MINUTE)
            wait_until(lambda: time.monotonic() > begin + MINUTE, 2 * MINUTE, "a minute is over", pause=PAUSE)
        with fleet.step("it comes back"):
            copy.until_at_rest(workers=2)
            copy.tunnel.until_spread(2)

    assert copy.restarts() == before
    copy.assert_equal()


@pytest.mark.lasts(45)
def test_a_killed_operator_moves_no_channel(fleet: Fleet, copy: Copy) -> None:
    before, owners = copy.restarts(), copy.tunnel.owners()

    with fleet.step("the operator is killed"), fleet.writing():
        kill_operator(fleet)
        copy.edit(monitoring={"lagDegradedSeconds": 902})
        copy.until_at_rest(workers=2)

    assert (copy.restarts(), copy.tunnel.owners()) == (before, owners)
    copy.assert_equal()


def _one_worker(copy: Copy) -> tuple[str, str]:
    """Return the pod and the client of one worker that owns channels."""
    client = next(iter(copy.tunnel.owners()))
    return next(name for name in copy.restarts() if name in client), client
