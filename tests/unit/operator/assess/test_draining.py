"""What still consumes for an object whose workers have to stop, also where no pod shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, TunnelId
from ots_tunnel_operator.assess.draining import client_without_pod
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    channel,
    deployment,
    description,
    planned,
    pod,
    recorded,
    reported,
    resource,
    world,
)

CLIENT = "01234567-pod-1"


def stopped(**changes: Any) -> World:
    """A suspended object without a pod."""
    found = world(resource(recorded(), suspend=True), children=deployment(0), pods=())
    return replace(found, **changes)


def owned_by(client: str, status: ChannelStatus = ChannelStatus.OPEN) -> Tunnel:
    return Tunnel(description(channel("c1", status, client=client, consumed=NOW - 5)))


@pytest.mark.parametrize("status", [ChannelStatus.OPEN, ChannelStatus.CLOSING])
def test_a_worker_whose_pod_was_deleted_by_force_still_consumes(status: ChannelStatus) -> None:
    assert client_without_pod(stopped(tunnel=owned_by(CLIENT, status))) == CLIENT


@pytest.mark.parametrize(
    "changes",
    [
        {"tunnel": owned_by("")},
        {"tunnel": owned_by(CLIENT, ChannelStatus.CLOSE)},
        {"tunnel": owned_by("98765432-of-another-object")},
        {"tunnel": owned_by(CLIENT), "pods": (pod(deleting=True),)},
        {"tunnel": Failure(Problem(Reason.ENDPOINT_UNREACHABLE, "no answer"))},
        {"tunnel": Tunnel(description(channel("c1", client=CLIENT), tunnel_id=TunnelId("another")))},
    ],
    ids=["freed", "closed", "of another object", "a pod that drains", "not seen", "another tunnel"],
)
def test_nothing_consumes_without_a_pod_otherwise(changes: dict[str, Any]) -> None:
    assert client_without_pod(stopped(**changes)) == ""


def test_an_object_is_suspended_once_the_service_has_freed_its_channels() -> None:
    held, freed = (
        {item["type"]: item for item in reported(stopped(tunnel=owned_by(client)))["conditions"]}
        for client in (CLIENT, "")
    )

    assert (held["Suspended"]["status"], held["Suspended"]["reason"]) == ("False", "Suspending")
    assert f"client '{CLIENT}' holds channels although its pod is gone" in held["Suspended"]["message"]
    assert freed["Suspended"]["status"] == "True"


def test_another_table_waits_for_a_worker_whose_pod_is_gone() -> None:
    """It writes to the former table, and what it checkpoints there would be missing in the next one."""
    status = recorded()
    status["destination"]["endpoint"] = "http://elsewhere:80"
    found = planned(world(resource(status), children=deployment(0), pods=(), tunnel=owned_by(CLIENT)))

    assert found.wait is not None
    assert f"client '{CLIENT}'" in found.wait.message
    assert not found.again
