"""Auto on a real cluster: three times the load for minutes, its end, and an object that sleeps until a row changes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ots_tunnel.demo.flights import flights_schema
from ots_tunnel.model import Action
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite
from tests.cluster_scenarios.fleet.conftest import MakeCopy
from tests.cluster_scenarios.fleet.copy import Copy
from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE, Document
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.long,
    pytest.mark.timeout(1200),
]

#: Rows per second of one worker, and of the writer at rest: a half of it, so that one worker is enough.
OF_A_WORKER, AT_REST = 200, 100
TARGET_LAG = 10
#: Seconds of lag that would be late, also while channels move to further workers.
LATE = 60
AUTO = {
    "mode": "Auto",
    "minReplicas": 1,
    "maxReplicas": 4,
    "targetLagSeconds": TARGET_LAG,
    "catchUpSeconds": 60,
    "scaleUp": {"stabilizationSeconds": 15},
    "scaleDown": {"stabilizationSeconds": 30},
}
#: The least that the definition allows.
SLEEPY = {
    "mode": "Auto",
    "minReplicas": 0,
    "scaleDown": {"stabilizationSeconds": 15},
    "scaleToZero": {"enabled": True, "idleSeconds": 60, "peekIntervalSeconds": 30},
}
QUIET = "quiet"


@pytest.fixture(scope="module")
def sleeper(fleet: Fleet) -> Iterator[Copy]:
    """An object whose table has some rows and no writer; it falls asleep while the other test runs."""
    admin = fleet.tables()
    try:
        if admin.describe(QUIET) is None:
            admin.create(flights_schema(QUIET))
    finally:
        admin.close()
    _put(fleet, range(20))
    found = Copy(fleet, "sleeper", source=QUIET)
    found.apply(replicas=1, autoscaling=SLEEPY)
    yield found
    found.delete()


@pytest.mark.lasts(360)
@pytest.mark.usefixtures("sleeper")
def test_three_times_the_load_brings_workers_and_its_end_takes_them_away(fleet: Fleet, make_copy: MakeCopy) -> None:
    copy = make_copy("auto")
    copy.apply(replicas=1, autoscaling=AUTO, delivery={"rateLimit": {"rowsPerSecondPerWorker": OF_A_WORKER}})
    with fleet.writing(AT_REST), fleet.step("one worker is enough"):
        copy.until("changes are followed", lambda _: copy.condition("Ready")[0] == "True")
        copy.until("one worker is left", lambda status: _desired(status) == 1, 480)
        copy.until_at_rest(workers=1)
    with fleet.writing(3 * AT_REST):
        with fleet.step("three times the load"):
            copy.until("more workers are wanted", lambda status: _desired(status) >= 2, 180)
            copy.until("they are ready", lambda status: status["readyReplicas"] >= 2, 90)
        with fleet.step("the lag is worked off under that load"):
            copy.until("the lag is below its target", _is_in_time, 480)
        with fleet.step("for a minute more workers stay, and no change waits long"):
            begin, found = time.monotonic(), []
            while time.monotonic() < begin + 60:
                found.append(copy.status())
                time.sleep(PAUSE)
            assert min(_desired(status) for status in found) >= 2
            assert max(status.get("lag", {}).get("seconds", 0) for status in found) < LATE

    with fleet.writing(AT_REST), fleet.step("the load is what it was"):
        copy.until("one worker is wanted", lambda status: _desired(status) == 1, 480)
        copy.until_at_rest(workers=1)
        assert _is_in_time(copy.status())

    assert copy.status()["autoscaling"]["lastDecision"]["to"] == 1
    copy.assert_equal()


@pytest.mark.lasts(150)
def test_an_idle_object_sleeps_and_wakes_by_a_change(fleet: Fleet, sleeper: Copy) -> None:
    with fleet.step("it falls asleep"):
        sleeper.until("it sleeps", lambda _: sleeper.condition("Ready") == ("True", "Asleep"), 480)
        wait_until(lambda: not sleeper.pods(), 60, "no worker is left", pause=PAUSE)
    with fleet.step("a change wakes it"):
        _put(fleet, range(20, 25))
        wait_until(sleeper.pods, 90, "a worker starts", pause=PAUSE)
        sleeper.until_at_rest(workers=1)

    sleeper.assert_equal()
    assert sleeper.status()["autoscaling"]["lastDecision"]["reason"] == "Woken"


def _desired(status: Document) -> int:
    return int(status.get("autoscaling", {}).get("desiredReplicas", 0))


def _is_in_time(status: Document) -> bool:
    seconds = status.get("lag", {}).get("seconds")
    return seconds is not None and seconds <= TARGET_LAG


def _put(fleet: Fleet, numbers: range) -> None:
    """Write rows into the quiet table."""
    rows = []
    for number in numbers:
        key = (("carrier", "UA"), ("flight", number), ("time_hour", "2013-01-01T05:00:00Z"))
        rows.append(RowWrite(Action.PUT, key, (Column("distance", number, None),)))
    admin = fleet.tables()
    try:
        assert not any(admin.write(QUIET, rows))
    finally:
        admin.close()
