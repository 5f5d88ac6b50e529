"""Completion is proved: no channel is left out, and no single worker's flag decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage, TunnelType
from ots_tunnel_operator.assess.completion import is_completed
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world import Failure, Pod, Tunnel, World
from tests.support.worlds import NOW, base, channel, description, pod, recorded, resource, world

DONE = {"conditions": [{"type": "Completed", "status": "True"}]}


def bounded(*channels: ChannelInfo, pods: tuple[Pod, ...] = (), end: float = NOW - 60, **status: Any) -> World:
    """An object that follows a stream up to an end time."""
    window = {"startFrom": "Earliest", "endTime": timestamp(end)}
    of = resource(recorded(**status), source__tunnel__type="Stream", source__tunnel__stream=window)
    return world(of, tunnel=Tunnel(description(*channels, kind=TunnelType.Stream)), pods=pods)


def worker(name: str, *, completed: bool = True) -> Pod:
    found = pod(name)
    assert found.report is not None
    return replace(found, report=replace(found.report, completed=completed))


def owned(name: str, by: str) -> ChannelInfo:
    return channel(name, client=f"01234567-{by}")


FIRST, SECOND = owned("c1", "pod-1"), owned("c2", "pod-2")


def test_every_worker_has_to_report_it() -> None:
    assert is_completed(bounded(FIRST, SECOND, pods=(worker("pod-1"), worker("pod-2"))))
    assert not is_completed(bounded(FIRST, SECOND, pods=(worker("pod-1"), worker("pod-2", completed=False))))
    assert not is_completed(bounded(FIRST, SECOND, pods=(worker("pod-1"), pod("pod-2", ready=False))))
    assert not is_completed(bounded(FIRST, SECOND))


@pytest.mark.parametrize("owner", ["pod-2", "pod-1-before-its-restart"])
def test_a_channel_of_a_client_that_does_not_report_is_not_done(owner: str) -> None:
    assert not is_completed(bounded(FIRST, owned("c2", owner), pods=(worker("pod-1"),)))


def test_a_child_that_waits_needs_no_owner() -> None:
    waiting = channel("c3", ChannelStatus.WAIT, client="")

    assert is_completed(bounded(FIRST, waiting, pods=(worker("pod-1"),)))


def test_nothing_is_completed_before_the_end_time_or_without_one() -> None:
    assert not is_completed(bounded(FIRST, pods=(worker("pod-1"),), end=NOW + 60))
    assert not is_completed(world())


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
