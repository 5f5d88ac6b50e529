"""A rollout is told as one until it is over, whatever else goes wrong meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.notices import notices
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.report import ReportedGap
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))
NO_SECRET = Failure(Problem(Reason.SECRET_NOT_FOUND, "no such Secret", ("CredentialsValid", "SinkReady")))
PODS = (pod("pod-1", report_channel("c1")), pod("pod-2"), pod("pod-3"))


def rolling(status: dict[str, Any], updated: int, **changes: Any) -> World:
    """Three workers, of which as many have been replaced."""
    children = deployment(3, replicas=3 if updated == 3 else 4, updatedReplicas=updated)
    return replace(world(resource(recorded() | status, replicas=3), children=children, pods=PODS), **changes)


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    found = next(item for item in status["conditions"] if item["type"] == kind)
    return found["status"], found["reason"]


def progress(status: dict[str, Any]) -> tuple[str, str]:
    return condition(status, "Progressing")


def stalled(status: dict[str, Any]) -> tuple[str, str]:
    return condition(status, "Stalled")


def events(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [notice.reason for notice in notices(before["conditions"], after["conditions"])]


@pytest.mark.parametrize("problem", [{"tunnel": BUSY}, {"sink_credentials": NO_SECRET}], ids=["busy", "no Secret"])
def test_a_rollout_goes_on_beside_a_problem_elsewhere(problem: dict[str, Any]) -> None:
    first = reported(rolling({}, 1))
    second = reported(rolling(first, 1, **problem))
    third = reported(rolling(second, 3))

    assert progress(first) == progress(second) == ("True", "RollingWorkers")
    assert "RolloutComplete" not in events(first, second)
    assert "RolloutComplete" in events(second, third)


def test_a_rollout_that_is_given_up_is_not_complete() -> None:
    first = reported(rolling({}, 1))
    stopped = reported(rolling(first, 1, tunnel=Missing()))

    assert progress(stopped) == ("False", "AsExpected")
    assert events(first, stopped) == ["TunnelNotFound"]


def test_an_invalid_edit_in_the_middle_of_a_rollout_does_not_complete_it() -> None:
    """The spec is applied to no worker, and those that run are left as they are: two of them are former ones."""
    first = reported(rolling({}, 1))
    before = rolling(first, 1)
    filtered = {"keyRange": {"begin": [{"string": "b"}], "end": [{"string": "a"}]}}
    invalid = reported(
        replace(before, resource=resource(recorded() | first, replicas=3, delivery={"filter": filtered}))
    )

    assert events(first, invalid) == ["InvalidSpec"]


def test_a_rollout_is_not_complete_beside_a_problem_that_stalls_the_object() -> None:
    first = reported(rolling({}, 1))
    rest = [item for item in first["conditions"] if item["type"] not in ("Progressing", "Stalled")]
    over = {"type": "Progressing", "status": "False", "reason": Reason.AS_EXPECTED, "message": ""}

    for status, found in (("True", False), ("False", True)):
        rejected = {"type": "Stalled", "status": status, "reason": Reason.SINK_REJECTED, "message": ""}
        notified = [notice.reason for notice in notices(first["conditions"], [*rest, over, rejected])]
        assert ("RolloutComplete" in notified) is found


def test_a_rollout_ends_beside_a_gap_that_reading_may_refute_and_not_beside_one_that_stops_workers() -> None:
    unread = Tunnel(description(channel("c1", consumed=NOW - 200_000)))
    silent = tuple(pod(f"pod-{number}") for number in (1, 2, 3))
    ended = pod("pod-1", ready=False, gaps=(ReportedGap("c1", NOW - 200_000, NOW - 5),))
    first = reported(rolling({}, 1, tunnel=unread, pods=silent))

    rolled = reported(rolling(first, 3, tunnel=unread, pods=silent))
    stopped = reported(rolling(first, 1, tunnel=unread, pods=(ended,)))

    assert progress(first) == ("True", "RollingWorkers")
    assert stalled(first) == stalled(rolled) == stalled(stopped) == ("True", "PossibleGap")
    assert events(first, rolled) == ["RolloutComplete"]
    assert progress(stopped) == ("False", "AsExpected")
    assert events(first, stopped) == []
