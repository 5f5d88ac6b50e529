"""How late something is, is told by the service's clock, however far the operator's is from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel.model import ChannelId, ChannelStatus, Stage, StreamConfig, TunnelType
from ots_tunnel_operator.assess.service_clock import service_now
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    FRESH,
    NOW,
    assessed,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    resource,
    world,
)

UNREAD = description(channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 500, rows=5))


def paused(ahead: float) -> World:
    """An object without workers, 500 s of whose stream wait, seen by a clock that is ahead of the service's."""
    found = world(resource(recorded(), suspend=True), tunnel=Tunnel(UNREAD), pods=(), children=deployment(0))
    return replace(found, now=NOW + ahead)


@pytest.mark.parametrize("ahead", [0.0, 600.0, -600.0])
def test_the_lag_of_a_channel_without_a_worker_is_by_the_service_s_clock(ahead: float) -> None:
    found = assessed(paused(ahead))

    assert found.lag is not None
    assert (found.lag.seconds, found.retention_used) == (500, 0)


@pytest.mark.parametrize("ahead", [600.0, -600.0])
def test_so_is_the_lag_of_one_whose_worker_does_not_know_it_yet(ahead: float) -> None:
    taken = pod("pod-1", report_channel("c1", caught_up=False, consumed_up_to=NOW - 500, lag_seconds=None))
    tunnel = Tunnel(description(channel("c1", consumed=NOW - 500)))
    found = assessed(replace(world(tunnel=tunnel, pods=(taken,)), now=NOW + ahead)).lag

    assert found is not None
    assert found.seconds == 500


@pytest.mark.parametrize("ahead", [0.0, 600.0, -600.0])
def test_what_waits_since_the_tunnel_exists_is_as_old_as_the_service_says(ahead: float) -> None:
    start = StreamConfig(start_offset_ns=int((NOW - 50_000) * 1e9))
    waiting = description(channel("c1", client=""), kind=TunnelType.Stream, stage=Stage.STREAM, stream=start)
    of = resource(recorded(), suspend=True, source__tunnel__type="Stream")
    found = world(of, tunnel=Tunnel(waiting, {ChannelId("c1"): FRESH}), pods=(), children=deployment(0))

    assert assessed(replace(found, now=NOW + ahead)).retention_used == 50


def test_a_look_that_is_kept_grows_older_by_the_operator_s_clock() -> None:
    kept = replace(paused(600.0), tunnel=Tunnel(UNREAD, seen=NOW + 590))

    assert service_now(kept) == NOW + 10


@pytest.mark.parametrize("ahead", [901.0, -901.0, 86_400.0])
def test_a_time_that_no_service_with_an_accepted_request_has_is_not_believed(ahead: float) -> None:
    assert service_now(paused(ahead)) == NOW + ahead


def test_without_a_time_of_the_service_the_operator_s_counts() -> None:
    untold = Tunnel(replace(UNREAD, service_time=None))

    assert service_now(replace(paused(60.0), tunnel=untold)) == NOW + 60
    assert service_now(replace(paused(60.0), tunnel=Unread())) == NOW + 60
