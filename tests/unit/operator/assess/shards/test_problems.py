"""What is wrong with a stream or its leases, and what the plan makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.assess.shards.problems import lease_table_unusable
from ots_tunnel_operator.plan.actions import ScaleDown
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import UNREAD, Failure, Missing
from ots_tunnel_operator.world.service import Peek, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.stream_worlds import (
    LEASES,
    stream_description,
    stream_recorded,
    stream_resource,
    stream_world,
)
from tests.support.operator.worlds import NOW, channel, deployment, planned, reported

ELDER = Competitor("elder", "shop", NOW - 5000, "a")
ANOTHER = Tunnel(stream_description(channel("s1"), tunnel_id="flights_1800000000"), {})


def condition(of: World, kind: str) -> tuple[str, str]:
    found = next(item for item in reported(of)["conditions"] if item["type"] == kind)
    return found["status"], found["reason"]


def test_workers_of_others_degrade_it_until_they_are_stopped_or_have_leases_of_their_own() -> None:
    of = stream_world(foreign_since={"java-1": NOW - 900})
    found = next(item for item in reported(of)["conditions"] if item["type"] == "Degraded")

    assert (found["status"], found["reason"]) == ("True", "ForeignClient")
    assert "java-1" in found["message"]
    assert "give it a table of leases of its own" in found["message"]


def test_a_healthy_object_has_no_problem() -> None:
    assert planned(stream_world()).problem is None
    assert condition(stream_world(), "Ready") == ("True", "Consuming")


@pytest.mark.parametrize(
    ("of", "reason", "says"),
    [
        (
            stream_world(source=Missing(), tunnel=UNREAD),
            Reason.NO_STREAM,
            "spec.source.table 'flights': no such table in instance",
        ),
        (stream_world(tunnel=Missing()), Reason.NO_STREAM, "spec.source.table 'flights': its stream is switched off"),
        (stream_world(tunnel=ANOTHER), Reason.STREAM_REPLACED, "found flights_1800000000, this object read flights_17"),
        (
            stream_world(elder=ELDER, tunnel=UNREAD),
            Reason.LEASE_TABLE_IN_USE,
            "spec.source.stream.leaseTable 'flights_leases': the elder object shop/elder shares",
        ),
        (
            stream_world(tunnel=Failure(lease_table_unusable(stream_resource(), "found pk STRING", stops=True))),
            Reason.LEASE_TABLE_UNUSABLE,
            "something else uses this table (found pk STRING)",
        ),
    ],
)
def test_the_workers_are_stopped_and_a_person_is_told(of: World, reason: Reason, says: str) -> None:
    found = planned(of)

    assert found.problem is not None
    assert (found.problem.reason, found.actions) == (reason, (ScaleDown(),))
    assert says in found.problem.message
    for kind, status in (("Ready", "False"), ("TunnelReady", "False"), ("Stalled", "True")):
        assert condition(of, kind) == (status, reason)


def test_rows_that_are_no_leases_stop_no_worker() -> None:
    healthy = stream_world()
    assert isinstance(healthy.tunnel, Tunnel)
    of = stream_world(tunnel=Tunnel(healthy.tunnel.description, {}, faults=("key of a lease: found pk",)))

    found = planned(of)

    assert found.problem is not None
    assert (found.problem.reason, found.replicas) == (Reason.LEASE_TABLE_UNUSABLE, 1)
    assert ScaleDown() not in found.actions


def test_a_stream_that_is_off_before_anything_was_read_loses_nothing() -> None:
    fresh = planned(stream_world(stream_resource(), tunnel=Missing(), pods=(), children={})).problem
    used = planned(stream_world(tunnel=Missing())).problem

    assert fresh is not None
    assert used is not None
    assert "lost" not in fresh.message
    assert "kubectl delete ott flights-copy -n default" in used.message


@pytest.mark.parametrize("gone", [{"tunnel": Missing()}, {"tunnel": ANOTHER}, {"source": Missing(), "tunnel": UNREAD}])
def test_the_verdict_stays_while_nothing_can_be_seen(gone: dict[str, Any]) -> None:
    told = reported(stream_world(**gone))["verdict"]
    after = stream_world(stream_resource(stream_recorded(verdict=told)), tunnel=UNREAD)

    problem = planned(after).problem

    assert problem is not None
    assert problem.reason == told["reason"]
    # the stream is back, under the id that is recorded: nothing was lost
    assert planned(stream_world(stream_resource(stream_recorded(verdict=told)))).problem is None


@pytest.mark.parametrize("paused", [{"suspend": True}, {"replicas": 0}])
def test_a_paused_object_is_warned_before_the_stream_drops_what_it_has_not_read(paused: dict[str, Any]) -> None:
    # the stream of these worlds keeps 100,000 s
    peeks = {shard: Peek(NOW - 1, waits=True, empty=NOW - 95_000, is_of_lease=True) for shard in ("s1", "s2")}
    of = stream_world(stream_resource(stream_recorded(), **paused), pods=(), peeks=peeks)

    assert condition(of, "Degraded") == ("True", "RetentionAtRisk")
    assert reported(of)["lag"]["retentionUsedPercent"] == 94


@pytest.mark.parametrize("found", [Missing(), ANOTHER])
def test_an_object_that_begins_with_the_latest_change_is_to_begin_the_new_stream_with_the_earliest(
    found: Missing | Tunnel,
) -> None:
    latest = stream_resource(stream_recorded(), source__stream__startFrom="Latest")

    problem = planned(stream_world(latest, tunnel=found)).problem

    assert problem is not None
    assert "startFrom Earliest, because" in problem.message


DONE = {"conditions": [{"type": "Completed", "status": "True"}]}
UNTIL = {"leaseTable": LEASES, "endTime": timestamp(NOW - 60)}


def of_completed(**changes: Any) -> World:
    """An object that was Completed, and whose workers are gone."""
    of = stream_resource(stream_recorded(**DONE), source__stream=UNTIL)
    return stream_world(of, pods=(), children=deployment(0), **changes)


@pytest.mark.parametrize("gone", [{"tunnel": Missing()}, {"tunnel": ANOTHER}, {"source": Missing(), "tunnel": UNREAD}])
def test_what_was_delivered_stays_delivered_when_the_stream_is_gone(gone: dict[str, Any]) -> None:
    of = of_completed(**gone)

    found = planned(of)

    assert (found.completed, found.problem, found.actions) == (True, None, ())
    assert condition(of, "Ready") == ("True", "Completed")
    assert condition(of, "Stalled")[0] == "False"
    assert reported(of)["phase"] == "Completed"
    (tunnel,) = (item for item in reported(of)["conditions"] if item["type"] == "TunnelReady")
    assert tunnel["status"] == "False"
    assert "nothing is lost" in tunnel["message"]
    assert "delete" not in tunnel["message"]


@pytest.mark.parametrize(
    "tunnel",
    [
        Tunnel(stream_description(channel("s1")), {}, unfit="time to live: found 86400 s, allowed is -1"),
        Tunnel(stream_description(channel("s1")), {}, faults=("key of a lease: found pk",)),
        Failure(lease_table_unusable(stream_resource(), "found pk STRING", stops=True)),
    ],
    ids=["setting", "row", "key"],
)
def test_a_completed_object_needs_no_table_of_leases(tunnel: Tunnel | Failure) -> None:
    of = of_completed(tunnel=tunnel)

    assert (planned(of).completed, planned(of).problem) == (True, None)
    assert condition(of, "Ready") == ("True", "Completed")
    assert condition(of, "Degraded")[0] == "False"
    assert condition(of, "TunnelReady") == ("False", "LeaseTableUnusable")


def test_a_completed_object_does_not_mind_who_reads_on() -> None:
    """Another one with the same leases may follow once this one is done."""
    of = of_completed(foreign_since={"java-1": NOW - 900})

    assert condition(of, "Ready") == ("True", "Completed")
    assert condition(of, "Degraded")[0] == "False"


def test_a_table_that_is_gone_has_taken_its_stream_along() -> None:
    """A new table of that name has another stream, so to create it is not enough."""
    found = planned(stream_world(source=Missing(), tunnel=UNREAD)).problem
    fresh = planned(stream_world(stream_resource(), source=Missing(), tunnel=UNREAD, pods=(), children={})).problem

    assert found is not None
    assert fresh is not None
    assert (found.reason, fresh.reason) == (Reason.NO_STREAM, Reason.TABLE_NOT_FOUND)
    assert "with its stream flights_1700000000" in found.message
    assert "kubectl delete ott flights-copy -n default" in found.message
    assert "stream" not in fresh.message
