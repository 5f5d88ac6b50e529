"""An object that reads a stream: nothing is created but the destination, and the workers share shards."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelInfo, ChannelStatus
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.gaps import find_gaps
from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import History, Idle
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.observe.belonging import with_own_reports
from ots_tunnel_operator.plan.actions import ApplyObject, CreateTunnel, EnsureDestination, RecordStatus, ScaleDown
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Peek, Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.objects import EMULATOR, tunnel_object
from tests.support.operator.stream_worlds import (
    BY_LEASES,
    LEASES,
    STREAM_ID,
    STREAM_RECORD,
    stream_description,
    stream_pod,
    stream_recorded,
    stream_resource,
    stream_world,
)
from tests.support.operator.worlds import (
    COPY,
    NOW,
    channel,
    deployment,
    planned,
    pod,
    report_channel,
    reported,
)

FRESH = Tunnel(stream_description(channel("s1", ChannelStatus.CLOSE, client="")), {})
UNSTARTED: dict[str, Any] = {"pods": (), "children": {}, "tunnel": FRESH}


def test_the_destination_comes_first() -> None:
    found = planned(stream_world(stream_resource(), destination=Missing(), **UNSTARTED))

    assert [type(action) for action in found.actions] == [RecordStatus, EnsureDestination]


def test_the_stream_is_recorded_and_nothing_is_created_for_it() -> None:
    destination = stream_recorded()["destination"]
    found = planned(stream_world(stream_resource({"destination": destination}), **UNSTARTED))

    assert found.actions == (RecordStatus({"tunnel": STREAM_RECORD}),)
    assert found.again


def test_then_the_workers_run_the_command_of_a_stream() -> None:
    found = planned(stream_world(**UNSTARTED))

    manifests = {one.manifest["kind"]: one.manifest for one in found.actions if isinstance(one, ApplyObject)}
    (container,) = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    path = f"{names.CONFIG_DIRECTORY}/{names.WORKER_FILE}"
    assert container["args"] == ["ots-tunnel", "stream", "run", "--config", path]
    assert f"leaseTable: {LEASES}" in manifests["ConfigMap"]["data"][names.WORKER_FILE]
    assert not any(isinstance(action, CreateTunnel) for action in found.actions)


def test_leases_that_were_read_before_are_not_followed_into_an_empty_table() -> None:
    """An earlier object, or workers in Java, have delivered to another place what this table lacks."""
    moved = Tunnel(stream_description(channel("s1", ChannelStatus.TERMINATED, client="")), {})
    of = stream_world(stream_resource(), pods=(), children={}, tunnel=moved, destination=Table(COPY, empty=True))

    problem = planned(of).problem

    assert problem is not None
    assert "table of leases 'flights_leases' was consumed before" in problem.message
    assert "another spec.source.stream.leaseTable" in problem.message


def test_a_suspended_object_has_no_worker() -> None:
    assert planned(stream_world(stream_resource(stream_recorded(), suspend=True))).actions == (ScaleDown(),)


def test_a_reset_is_refused_once() -> None:
    of = stream_resource(stream_recorded(), suspend=True)
    request = json.dumps({"token": "t-1", "form": "NewTunnel"})
    of.object.metadata.annotations["ots-tunnel.dev/reset"] = request

    found = planned(stream_world(of, pods=(), children=deployment(0)))

    (record,) = (action for action in found.actions if isinstance(action, RecordStatus))
    assert record.change["reset"]["state"] == "Refused"
    assert "spec.source: found stream, needed is tunnel" in record.change["reset"]["message"]


def test_the_status_has_shards_where_it_has_channels() -> None:
    status = reported(stream_world())

    assert status["tunnel"] == STREAM_RECORD | {"streamRetentionSeconds": 100_000}
    assert status["channels"]["open"] == status["channels"]["stream"] == 2
    assert (status["lag"]["seconds"], status["lag"]["caughtUp"]) == (0, True)
    assert (status["lag"]["byCheckpoint"], status["lag"]["notLookedAt"]) == (0, 0)
    assert status["workers"][0]["channels"] == 2
    assert status["phase"] == "Streaming"
    # nobody counts them
    assert "rowsTotal" not in status["throughput"]
    assert status["throughput"]["rowsPerSecond"] == 120


def test_the_status_says_what_was_not_looked_at() -> None:
    peeks = {"s1": Peek(NOW, waits=True, empty=NOW - 40, is_of_lease=True)}
    lag = reported(stream_world(pods=(), peeks=peeks))["lag"]

    assert (lag["byCheckpoint"], lag["notLookedAt"]) == (1, 1)
    assert "seconds" not in lag
    assert lag["slowest"] == [{"id": "s1", "type": "Stream", "seconds": 40}]


def test_the_checkpoint_bounds_the_lag_of_a_worker_that_does_not_answer() -> None:
    silent = stream_pod(report=None)
    peeks = {name: Peek(NOW, waits=True, empty=NOW - 40, is_of_lease=True) for name in ("s1", "s2")}

    assert reported(stream_world(pods=(silent,), peeks=peeks))["lag"]["seconds"] == 40
    assert "seconds" not in reported(stream_world(pods=(silent,)))["lag"]


def test_the_record_names_stream_and_leases() -> None:
    found = reported(stream_world())

    assert found["tunnel"]["leaseTable"] == LEASES
    assert found["tunnel"]["id"] == STREAM_ID
    assert found["tunnel"]["endpoint"] == EMULATOR


@pytest.mark.parametrize(("shards", "limit"), [(2, 2), (5, 4)])
def test_auto_has_at_most_a_worker_for_each_shard(shards: int, limit: int) -> None:
    auto = {"mode": "Auto", "maxReplicas": 4}
    listed = Tunnel(stream_description(*(channel(f"s{number}") for number in range(shards))), {})
    late = stream_pod(*(report_channel(f"s{number}", caught_up=False, lag_seconds=5000) for number in range(shards)))
    of = stream_resource(stream_recorded(), autoscaling=auto)

    scaling = reported(stream_world(of, tunnel=listed, pods=(late,)))["autoscaling"]

    assert scaling["usefulMaxReplicas"] == shards
    assert scaling.get("recommendedReplicas", 1) <= limit


def test_a_deletion_names_the_leases_and_never_deletes_them() -> None:
    body = tunnel_object(**BY_LEASES, deletionPolicy="Delete")

    remains = Remains(body | {"status": stream_recorded()})

    assert remains.tunnel == "table of leases 'flights_leases' of table 'flights'"
    assert (remains.deletes, remains.deletes_tunnel) == (True, False)
    assert remains.resource().spec.source.kind == "Stream"


def test_a_report_counts_where_it_names_the_leases() -> None:
    ours, others = stream_pod(report_channel("s1")), pod("pod-1", report_channel("s1"))
    assert others.report is not None
    others = replace(others, report=replace(others.report, tunnel_id="other_leases"))

    found = with_own_reports((ours, others), stream_resource(stream_recorded()))

    assert [len(each.report.channels) for each in found if each.report is not None] == [1, 0]


END = NOW - 60


def ended(*found: ChannelInfo, end_reached: bool = True, completed: bool = True) -> World:
    """An object with an end time that has passed, and a worker that holds the shards."""
    reports = [report_channel("s1", end_reached=end_reached, consumed_up_to=END)]
    worker = stream_pod(*reports)
    assert worker.report is not None
    of = stream_resource(stream_recorded(), source__stream={"leaseTable": LEASES, "endTime": timestamp(END)})
    tunnel = Tunnel(stream_description(*found, service_time=NOW), {}, same_since=NOW - 60)
    pods = (replace(worker, report=replace(worker.report, completed=completed)),)
    return stream_world(of, tunnel=tunnel, pods=pods, children=deployment(1))


@pytest.mark.parametrize(
    ("found", "is_completed"),
    [
        (ended(channel("s1")), True),
        (ended(channel("s1"), channel("s2", ChannelStatus.WAIT, client="")), True),
        (ended(channel("s1"), channel("s2", ChannelStatus.TERMINATED, client="")), True),
        (ended(channel("s1"), channel("s2", ChannelStatus.CLOSE, client="")), False),
        (ended(channel("s1"), channel("s2", client="a worker in Java")), False),
        (ended(channel("s1"), end_reached=False), False),
        (ended(channel("s1"), completed=False), False),
    ],
)
def test_an_end_time_completes_the_object_once_every_shard_is_read_up_to_it(found: World, is_completed: bool) -> None:
    plan = planned(found)

    assert plan.completed is is_completed
    assert (plan.replicas == 0) is is_completed
    [condition] = [each for each in reported(found)["conditions"] if each["type"] == "Completed"]
    assert condition["reason"] == ("EndTimeReached" if is_completed else "StreamOpen")


def test_the_service_time_of_a_stream_makes_no_gap_from_outside() -> None:
    """Until when a shard was read tells its worker alone; one of another program may have read on."""
    tunnel = Tunnel(stream_description(channel("s1", client="a worker in Java"), service_time=NOW), {})
    found = stream_world(tunnel=tunnel, pods=(), consumed_until={"s1": NOW - 30 * 86400})

    assert find_gaps(found, None) == ()


@pytest.mark.parametrize(
    "found",
    [
        stream_world(),
        stream_world(tunnel=FRESH),
        stream_world(tunnel=FRESH, pods=()),
        stream_world(pods=(stream_pod(report_channel("s1", error="boom"), report_channel("s2")),)),
        stream_world(pods=(stream_pod(report_channel("s1", caught_up=False, lag_seconds=9000), report_channel("s2")),)),
        ended(channel("s1", ChannelStatus.TERMINATED, client="")),
    ],
)
def test_conditions_speak_of_shards(found: World) -> None:
    texts = [each.get("message", "").partition("; see docs/")[0] for each in reported(found)["conditions"]]

    assert [text for text in texts if "shard" in text]
    assert [text for text in texts if "channel" in text] == []


SLEEPS = {"mode": "Auto", "minReplicas": 0, "scaleToZero": {"enabled": True}}
LOOKED = {"s1": Peek(NOW - 30, waits=False, is_of_lease=True), "s2": Peek(NOW - 20, waits=False, is_of_lease=True)}


def idle(peeks: dict[str, Peek], rows: int = 40) -> World:
    """One worker, which has counted 40 rows and none for an hour, beside looks at the checkpoints."""
    worker = stream_pod(report_channel("s1", rows=30), report_channel("s2", rows=rows - 30))
    assert worker.report is not None
    worker = replace(worker, report=replace(worker.report, rows_per_second=0.0))
    of = stream_resource(
        stream_recorded(autoscaling={"desiredReplicas": 1, "specReplicas": 1}), replicas=1, autoscaling=SLEEPS
    )
    before = Figures(NOW - 30, channels=2, lag=0.0, busy=0.1, rate=0.0, rows=40)
    history = History(figures=(before,), idle=Idle(NOW - 3600, 40))
    source = Table(stream_world().source.schema, stream_retention_seconds=86_400)
    return stream_world(of, pods=(worker,), peeks=peeks, scaling=history, children=deployment(1), source=source)


@pytest.mark.parametrize(
    ("found", "workers"),
    [
        (idle(LOOKED), 0),
        (idle({"s1": LOOKED["s1"]}), 1),
        (idle(LOOKED | {"s2": Peek(NOW - 20, waits=True, is_of_lease=True)}), 1),
        (idle(LOOKED, rows=41), 1),
    ],
)
def test_the_last_worker_goes_once_every_shard_was_looked_at_and_nothing_waits(found: World, workers: int) -> None:
    assert planned(found).replicas == workers


def asleep(peeks: dict[str, Peek]) -> World:
    """No worker since ten minutes; the leases are free."""
    record = {"desiredReplicas": 0, "specReplicas": 1, "sleep": {"since": timestamp(NOW - 600), "generation": 3}}
    of = stream_resource(stream_recorded(autoscaling=record), replicas=1, autoscaling=SLEEPS)
    free = [channel(name, ChannelStatus.CLOSE, client="") for name in ("s1", "s2")]
    source = Table(stream_world().source.schema, stream_retention_seconds=86_400)
    tunnel = Tunnel(stream_description(*free), {})
    return stream_world(of, pods=(), peeks=peeks, tunnel=tunnel, children=deployment(0), source=source)


def test_an_object_that_sleeps_is_ready_and_wakes_where_a_shard_has_something_to_read() -> None:
    found = asleep(LOOKED)
    [ready] = [each for each in reported(found)["conditions"] if each["type"] == "Ready"]

    assert planned(found).replicas == 0
    assert (ready["status"], ready["reason"]) == ("True", "Asleep")
    assert "the operator looks at each shard every" in ready["message"]
    woken = asleep(LOOKED | {"s1": Peek(NOW - 5, waits=True, is_of_lease=True)})
    assert planned(woken).replicas == 1
    assert "shard s1 has something to read" in str(reported(woken)["autoscaling"]["lastDecision"])
