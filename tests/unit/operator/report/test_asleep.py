"""What the status says of an object of which no worker runs, because nothing is to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus
from ots_tunnel_operator.plan.actions import ApplyObject, RecordStatus
from ots_tunnel_operator.report.status_change import is_different, is_urgent
from ots_tunnel_operator.reset.status_facts import delivered_until
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.service import Peek, Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.scaled_worlds import looked, scaled, sleeper
from tests.support.operator.worlds import (
    NOW,
    SCHEMA,
    TUNNEL_ID,
    assessed,
    channel,
    deployment,
    description,
    planned,
    pod,
    reported,
    resource,
)


def condition(status: dict[str, Any], kind: str) -> tuple[str, str, str]:
    (found,) = (item for item in status["conditions"] if item["type"] == kind)
    return found["status"], found["reason"], found["message"]


def test_it_is_ready_claims_no_lag_and_has_no_trouble() -> None:
    found = reported(sleeper())

    assert condition(found, "Ready")[:2] == ("True", "Asleep")
    assert condition(found, "Degraded")[:2] == ("False", "AsExpected")
    assert condition(found, "Rebalancing")[:2] == ("False", "Settled")
    assert condition(found, "WorkersAvailable")[:2] == ("True", "NoWorkersWanted")
    assert condition(found, "ScalingActive")[0] == "True"
    assert found["phase"] == "Streaming"
    assert "lag" not in found
    assert found["channels"]["unowned"] == 1
    assert found["autoscaling"] == {
        "desiredReplicas": 0,
        "recommendedReplicas": 0,
        "usefulMaxReplicas": 1,
        "limitedBy": "None",
        "specReplicas": 1,
        "sleep": {"since": timestamp(NOW - 600), "generation": 3},
    }


def test_a_table_that_was_never_written_to_uses_no_retention_while_it_sleeps() -> None:
    never = channel("c1", ChannelStatus.WAIT, client="")
    old = description(never, create_time_ns=int((NOW - 80_000) * 1e9))

    found = reported(sleeper(tunnel=Tunnel(old)))

    assert condition(found, "Degraded")[0] == "False"
    assert "lag" not in found


def test_looks_that_find_nothing_cause_no_write() -> None:
    of = sleeper()
    first = reported(of)
    later = replace(of, now=NOW + 305, peeks={"c1": Peek(NOW + 300, False, NOW + 300)})

    second = reported(replace(later, scaling=assessed(of).scaling.history))

    assert not is_urgent(first, second)
    assert not is_different(first, second)


def test_a_restarted_operator_that_has_looked_writes_nothing() -> None:
    of = sleeper()
    stored = reported(of)
    again = replace(of, resource=replace(of.resource, status=stored), now=NOW + 40)

    found = reported(replace(again, peeks={"c1": Peek(NOW + 40, False, NOW + 40)}))

    assert not is_urgent(stored, found)
    assert not is_different(stored, found)


@pytest.mark.parametrize(
    ("of", "ready", "reason", "words"),
    [
        (sleeper(peeks={}), "Unknown", "NotObserved", "not every channel was looked at yet"),
        (sleeper(peeks={"c1": Peek(NOW - 601, False)}), "Unknown", "NotObserved", "not every channel"),
        (sleeper(peeks={}, peek_failure="no permission"), "Unknown", "NotObserved", "looked at: no permission"),
        (sleeper(pods=(pod("pod-1", deleting=True),)), "False", "Scaling", "the last worker drains"),
        (sleeper(foreign_since={"somebody": NOW - 900}), "False", "ForeignClient", "somebody"),
        (sleeper(suspend=True), "False", "SuspendRequested", "spec.suspend is true"),
        (sleeper(replicas=0), "False", "NoWorkersWanted", "spec.replicas is 0"),
    ],
)
def test_it_is_ready_only_as_long_as_that_is_known(of: World, ready: str, reason: str, words: str) -> None:
    status, why, message = condition(reported(of), "Ready")

    assert (status, why) == (ready, reason)
    assert words in message


def test_what_was_not_looked_at_is_not_ready() -> None:
    """A tunnel that this pass did not ask for; the plan waits for it."""
    assert condition(reported(sleeper(tunnel=Unread())), "Ready")[0] != "True"


def test_waiting_records_wake_it_and_the_decision_is_recorded_first() -> None:
    of = sleeper(peeks={"c1": Peek(NOW - 5, True, NOW - 305)})

    record, *applied = planned(of).actions

    assert isinstance(record, RecordStatus)
    change = record.change["autoscaling"]
    assert (change["desiredReplicas"], change["sleep"]) == (1, None)
    assert change["lastDecision"]["reason"] == "Woken"
    assert [one.manifest["spec"]["replicas"] for one in applied if _is_deployment(one)] == [1]
    found = reported(of)
    assert condition(found, "Ready")[:2] == ("False", "Scaling")
    assert "sleep" not in found["autoscaling"]


def _is_deployment(action: Any) -> bool:
    return _is_applied(action, "Deployment")


def _is_applied(action: Any, kind: str) -> bool:
    return isinstance(action, ApplyObject) and action.manifest["kind"] == kind


def test_the_lag_of_a_woken_object_counts_from_the_last_look_that_found_nothing() -> None:
    found = reported(sleeper(peeks={"c1": Peek(NOW - 5, True, NOW - 305)}))

    assert found["lag"]["seconds"] == 305
    assert condition(found, "Degraded")[0] == "False"


def test_the_last_worker_goes_once_the_channels_were_looked_at() -> None:
    quick = {"minReplicas": 0, "scaleToZero": {"enabled": True, "idleSeconds": 60}}
    of = looked(scaled(replicas=1, busy=0, channels=2, autoscaling=quick), 7)
    of = replace(of, pods=tuple(_still(item) for item in of.pods))
    of = looked(replace(of, scaling=None), 7)

    stays = planned(of)
    goes = planned(replace(of, peeks={f"c{number}": Peek(of.now, False, of.now) for number in range(2)}))

    assert stays.replicas == 1
    assert goes.replicas == 0
    record = goes.actions[0]
    assert isinstance(record, RecordStatus)
    assert record.change["autoscaling"]["sleep"] == {"since": timestamp(of.now), "generation": 3}


def test_until_when_everything_was_read_outlives_the_tunnel_while_no_worker_runs() -> None:
    """A tunnel that is lost takes its consume points along, and there is no lag: a reset would call all of it lost."""
    quick = {"minReplicas": 0, "scaleToZero": {"enabled": True, "idleSeconds": 60}}
    of = scaled(replicas=1, busy=0, channels=2, autoscaling=quick)
    source = Table(SCHEMA, stream_retention_seconds=7 * 86_400)
    of = looked(replace(of, source=source, pods=tuple(_still(item) for item in of.pods)), 7)

    falls = replace(of, peeks={f"c{number}": Peek(of.now, False, NOW) for number in range(2)})

    status = reported(falls)
    assert status["autoscaling"]["desiredReplicas"] == 0
    assert "lag" not in status
    assert delivered_until(status, {}, None) == NOW
    # an operator that ends after it has stopped the worker, and before its report, leaves it behind
    record = planned(falls).actions[0]
    assert isinstance(record, RecordStatus)
    assert record.change["readUntil"] == status["readUntil"]
    (document,) = (one.manifest for one in planned(falls).actions if _is_applied(one, "ConfigMap"))
    assert timestamp(NOW) in str(document["data"])


def test_until_when_everything_was_read_is_recorded_with_the_decision() -> None:
    """An operator that dies in between, or whose next write is refused, finds nobody who could tell."""
    quick = {"minReplicas": 0, "scaleToZero": {"enabled": True, "idleSeconds": 60}}
    of = scaled(replicas=1, busy=0, channels=2, autoscaling=quick)
    of = looked(replace(of, pods=tuple(_still(item) for item in of.pods)), 7)
    falls = replace(of, peeks={f"c{number}": Peek(of.now, False, NOW) for number in range(2)})

    record = planned(falls).actions[0]

    assert isinstance(record, RecordStatus)
    stored = {**falls.resource.status, **record.change}
    gone = replace(falls, resource=replace(falls.resource, status=stored), pods=(), children=deployment(0))
    assert delivered_until(reported(replace(gone, scaling=None)), {}, None) == NOW


def _still(item: Any) -> Any:
    return replace(item, report=replace(item.report, rows_per_second=0.0, tunnel_id=TUNNEL_ID))


def test_a_refused_look_is_a_condition_of_its_own() -> None:
    quick = {"minReplicas": 0, "scaleToZero": {"enabled": True, "idleSeconds": 60}}
    of = scaled(replicas=1, busy=0, channels=2, autoscaling=quick)
    of = replace(of, pods=tuple(_still(item) for item in of.pods), peek_failure="no permission for ReadRecords")

    found = reported(looked(of, 8))

    status, reason, message = condition(found, "ScalingLimited")
    assert (status, reason) == ("True", "PeekFailed")
    assert "no permission for ReadRecords" in message
    assert found["autoscaling"]["limitedBy"] == "PeekFailed"


def test_the_end_time_wakes_it() -> None:
    window = {"startFrom": "Latest", "endTime": timestamp(NOW - 1)}
    of = sleeper()
    ended = resource(
        of.resource.status,
        replicas=1,
        source__tunnel__stream=window,
        autoscaling={"mode": "Auto", "minReplicas": 0, "scaleToZero": {"enabled": True}},
    )

    assert planned(of).replicas == 0
    assert planned(replace(of, resource=ended)).replicas == 1
