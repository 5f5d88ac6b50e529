"""Completion is proved: no channel is left out, and no single worker's flag decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage, TunnelType
from ots_tunnel_operator.assess.completion import is_completed
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import WorkerChannel
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    base,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    resource,
    world,
)

DONE = {"conditions": [{"type": "Completed", "status": "True"}]}


END = NOW - 60


def bounded(*channels: ChannelInfo, pods: tuple[Pod, ...] = (), end: float = END, **status: Any) -> World:
    """An object that follows a stream up to an end time; it has as many workers as wanted."""
    window = {"startFrom": "Earliest", "endTime": timestamp(end)}
    count = sum(found.is_alive for found in pods) or 1
    stream = {"source__tunnel__type": "Stream", "source__tunnel__stream": window}
    of = resource(recorded(**status), replicas=count, **stream)
    tunnel = Tunnel(description(*channels, kind=TunnelType.Stream), same_since=NOW - 20)
    return world(of, tunnel=tunnel, pods=pods, children=deployment(count))


def done(name: str, **changes: Any) -> WorkerChannel:
    """A channel that its worker reports as read up to the end time."""
    return report_channel(name, **({"end_reached": True, "consumed_up_to": END} | changes))


def worker(name: str, *channels: WorkerChannel, completed: bool = True, **changes: Any) -> Pod:
    found = pod(name, *channels, **changes)
    assert found.report is not None
    return replace(found, report=replace(found.report, completed=completed))


def owned(name: str, by: str, status: ChannelStatus = ChannelStatus.OPEN) -> ChannelInfo:
    return channel(name, status, client=f"01234567-{by}")


FIRST, SECOND = owned("c1", "pod-1"), owned("c2", "pod-2")
ONE, TWO = worker("pod-1", done("c1")), worker("pod-2", done("c2"))


def test_every_worker_has_to_report_it() -> None:
    assert is_completed(bounded(FIRST, SECOND, pods=(ONE, TWO)))
    assert not is_completed(bounded(FIRST, SECOND, pods=(ONE, worker("pod-2", done("c2"), completed=False))))
    assert not is_completed(bounded(FIRST, SECOND, pods=(ONE, pod("pod-2", ready=False))))
    assert not is_completed(bounded(FIRST, SECOND))


@pytest.mark.parametrize("owner", ["pod-2", "pod-1-before-its-restart"])
def test_a_channel_of_a_client_that_does_not_report_is_not_done(owner: str) -> None:
    assert not is_completed(bounded(FIRST, owned("c2", owner), pods=(worker("pod-1", done("c1"), done("c2")),)))


@pytest.mark.parametrize(
    "reported",
    [
        (),
        (done("c2", end_reached=False),),
        (done("c2", consumed_up_to=END - 1),),
        (done("c3"),),
        (done("c2", lag_seconds=65),),
        (done("c2", state="CLOSE"),),
    ],
)
def test_each_channel_has_to_be_reported_done_by_its_owner(reported: tuple[WorkerChannel, ...]) -> None:
    first = worker("pod-1", done("c1"), done("c2"))

    assert not is_completed(bounded(FIRST, SECOND, pods=(first, worker("pod-2", *reported))))


@pytest.mark.parametrize("point", [None, END - 0.0005, END + 5])
def test_a_consume_point_that_is_unknown_or_at_the_end_is_no_objection(point: float | None) -> None:
    assert is_completed(bounded(FIRST, pods=(worker("pod-1", done("c1", consumed_up_to=point)),)))


@pytest.mark.parametrize("status", [ChannelStatus.OPEN, ChannelStatus.CLOSE, ChannelStatus.CLOSING])
def test_a_channel_without_an_owner_is_moving(status: ChannelStatus) -> None:
    assert not is_completed(bounded(FIRST, channel("c2", status, client=""), pods=(ONE,)))


def test_a_child_that_waits_for_two_heartbeats_needs_no_owner() -> None:
    waiting = channel("c3", ChannelStatus.WAIT, client="")
    found = bounded(FIRST, waiting, pods=(ONE,))
    assert isinstance(found.tunnel, Tunnel)

    assert is_completed(found)
    assert not is_completed(replace(found, tunnel=replace(found.tunnel, same_since=NOW - 19)))
    assert not is_completed(replace(found, tunnel=replace(found.tunnel, same_since=None)))


def test_a_child_of_a_terminated_channel_is_opened_and_not_done() -> None:
    waiting, ended = channel("c3", ChannelStatus.WAIT, client=""), channel("c1", ChannelStatus.TERMINATED, client="")

    assert not is_completed(bounded(ended, waiting, pods=(worker("pod-1"),)))


@pytest.mark.parametrize("children", [{}, deployment(3), deployment(2, updatedReplicas=1)])
def test_nothing_is_completed_while_workers_are_missing_or_new(children: dict[tuple[str, str], Any]) -> None:
    assert not is_completed(replace(bounded(FIRST, SECOND, pods=(ONE, TWO)), children=children))


@pytest.mark.parametrize("status", [{"replicas": 3}, {"observedGeneration": 0}])
def test_nothing_is_completed_before_the_deployment_is_settled(status: dict[str, int]) -> None:
    found = deployment(2)
    found["Deployment", "flights-copy"]["status"] |= status

    assert not is_completed(replace(bounded(FIRST, SECOND, pods=(ONE, TWO)), children=found))


def test_nothing_is_completed_while_a_worker_is_leaving() -> None:
    assert not is_completed(bounded(FIRST, SECOND, pods=(ONE, replace(TWO, deleting=True))))
    assert not is_completed(replace(bounded(FIRST, pods=(ONE,)), children=deployment(2)))


def test_a_pod_that_has_ended_counts_neither_way() -> None:
    evicted = pod("pod-0", ready=False, phase="Failed")

    assert is_completed(bounded(FIRST, pods=(ONE, evicted)))


def test_nothing_is_completed_before_the_end_time_or_without_one() -> None:
    assert not is_completed(bounded(FIRST, pods=(ONE,), end=NOW + 60))
    assert not is_completed(world())


@pytest.mark.parametrize("service_time", [None, END, END - 60])
def test_the_end_time_is_compared_with_the_service_s_clock(service_time: float | None) -> None:
    found = description(FIRST, kind=TunnelType.Stream, service_time=service_time)

    assert not is_completed(replace(bounded(FIRST, pods=(ONE,)), tunnel=Tunnel(found)))
    # the operator's clock, an hour behind, decides nothing
    assert is_completed(replace(bounded(FIRST, pods=(ONE,)), now=NOW - 3600))


def test_a_stream_that_is_not_listed_yet_is_not_completed() -> None:
    ended = base("b1", ChannelStatus.TERMINATED, client="")

    assert not is_completed(bounded(ended, pods=(worker("pod-1"),)))


def test_a_stream_whose_channels_are_all_terminated_is_completed() -> None:
    assert is_completed(bounded(channel("c1", ChannelStatus.TERMINATED, client="")))


def test_base_data_is_completed_by_its_channels_alone() -> None:
    of = resource(recorded(), source__tunnel__type="BaseData")
    ended, running = base("b1", ChannelStatus.TERMINATED), base("b2")

    def found(*channels: ChannelInfo) -> World:
        return world(of, tunnel=Tunnel(description(*channels, kind=TunnelType.BaseData, stage=Stage.BASE)))

    assert is_completed(found(ended))
    assert not is_completed(found(ended, running))


def test_a_recorded_completion_stays_while_the_tunnel_cannot_be_read() -> None:
    busy = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy"))

    assert is_completed(replace(bounded(FIRST, **DONE), tunnel=busy))
    assert not is_completed(replace(bounded(FIRST), tunnel=busy))
