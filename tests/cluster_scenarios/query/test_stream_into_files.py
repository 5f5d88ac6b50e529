"""Spark follows a tunnel into files under the real Spark operator, while everything that can be killed is killed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE
from tests.cluster_scenarios.query.committed import Change, committed_changes
from tests.cluster_scenarios.query.query import START, Query
from tests.cluster_scenarios.query.written_changes import first_step_back, places_of, written
from tests.demo.lake.lake_object import FOLDER, TUNNEL
from tests.demo.lake.volumes import Volumes
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.lasts(600),
    pytest.mark.timeout(3000),
]

#: Changes per second: a query of one core beside everything else takes them with ease.
RATE = 40


def test_each_change_is_in_the_files_once_whatever_is_killed(fleet: Fleet, volumes: Volumes) -> None:
    query, since = Query(fleet), time.time()

    def stored() -> list[Change]:
        return committed_changes(volumes.files / FOLDER)

    with fleet.step("the query follows the tunnel"):
        query.apply()
        query.until_ready()
    with fleet.writing(rate=RATE):
        with fleet.step("a batch is written"):
            query.until_behind(-1)
            wait_until(stored, START, "lines in committed files", pause=PAUSE)
        with fleet.step("a partition is split, and the driver is killed"):
            fleet.admin.post("/split", instance=fleet.scenario.instance, table=fleet.scenario.table)
            _replaced(query, "driver")
        with fleet.step("the executor is killed"):
            _replaced(query, "executor")
        with fleet.step("the operator is killed"):
            home = ("-n", fleet.scenario.operator_namespace)
            words = (
                "delete",
                "pod",
                "-l",
                "app.kubernetes.io/instance=ots-tunnel-operator",
                "--force",
                "--grace-period=0",
            )
            fleet.kube.kubectl(*home, *words)
            query.until_behind(query.batch())
        with fleet.step("the query is suspended, and resumed"):
            query.edit(suspend=True)
            query.until("it is suspended", lambda status: status.get("phase") == "Suspended")
            assert query.pods("driver") == {}
            query.edit(suspend=False)
            query.until_ready()
            query.until_behind(query.batch())
        with fleet.step("its document is edited"):
            before = set(query.pods("driver"))
            query.edit(spark={"triggerIntervalSeconds": 2})
            wait_until(lambda: set(query.pods("driver")) - before, START, "another driver", pause=PAUSE)
            query.until_ready()
    with fleet.step("everything is written"):
        wanted = asyncio.run(written(fleet.endpoints.data, fleet.scenario, since_us=int(since * 1e6)))
        assert wanted
        wait_until(
            lambda: len(stored()) >= wanted.total(),
            START,
            "the last change is in a file",
            pause=PAUSE,
            explain=lambda: f"{len(stored())} of {wanted.total()} changes; {query.status().get('spark')}",
        )
        query.until("its lag is 0", lambda status: status.get("lag", {}).get("seconds") == 0)
    found = Counter(places_of(stored()))
    assert wanted - found == Counter()
    assert found - wanted == Counter()
    assert first_step_back(stored()) is None
    with fleet.step("the object is deleted"):
        query.delete()
        assert query.application() is None
        assert query.pods("driver") == query.pods("executor") == {}
        assert TUNNEL in {tunnel["name"] for tunnel in fleet.tunnels()}  # Retain is the default
    assert Counter(places_of(stored())) == wanted


def _replaced(query: Query, role: str) -> None:
    """Kill the pod of a role; wait until another one runs and a further batch is written."""
    before, batch = set(query.pods(role)), query.batch()
    query.kill(role)
    wait_until(lambda: set(query.pods(role)) - before, START, f"another {role}", pause=PAUSE)
    query.until_ready()
    query.until_behind(batch)
