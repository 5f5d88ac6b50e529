"""An edit that nothing can carry out leaves what runs: former settings, former number of workers."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.plan.actions import ApplyObject, ScaleDown
from ots_tunnel_operator.plan.workers import consume
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import SETTINGS, assessed, deployment, planned, recorded, reported, resource, world

#: A place for files without a volume: the worker's document alone cannot tell.
NO_VOLUME: dict[str, Any] = {"sink": {"files": {"url": "file:///data/orders"}}}
NO_VOLUME_FOR_REFUSED = {
    "delivery": {"onPermanentError": "DeadLetter", "deadLetter": {"files": {"url": "file:///refused"}}}
}
EMPTY_RANGE = {"delivery": {"filter": {"keyRange": {"begin": [{"string": "b"}], "end": [{"string": "a"}]}}}}
EDITS = [NO_VOLUME, NO_VOLUME_FOR_REFUSED, EMPTY_RANGE]

WRONG_ENDPOINT = Failure(Problem(Reason.INVALID_SPEC, "spec.source: wrong", ("TunnelReady",)))
NO_SECRET = Failure(Problem(Reason.SECRET_NOT_FOUND, "spec.source.credentials", ("CredentialsValid",)))


def edited(changes: dict[str, Any], **observed: Any) -> World:
    """Workers run, and then the spec was edited."""
    if "sink" in changes:
        observed |= {"sink_credentials": Unread(), "destination": Unread()}
    return world(resource({"tunnel": recorded()["tunnel"]} if "sink" in changes else recorded(), **changes), **observed)


@pytest.mark.parametrize("changes", EDITS)
@pytest.mark.parametrize("replicas", [1, 5])
def test_an_invalid_edit_applies_nothing(changes: dict[str, Any], replicas: int) -> None:
    of = edited(changes | {"replicas": replicas, "workers__image": "worker:2"})
    found, status = planned(of), reported(of)

    assert found.problem is not None
    assert (found.problem.reason, found.actions, found.replicas) == (Reason.INVALID_SPEC, (), 1)
    ready = next(item for item in status["conditions"] if item["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")


@pytest.mark.parametrize("changes", EDITS)
def test_suspend_in_the_same_edit_is_followed(changes: dict[str, Any]) -> None:
    found = planned(edited(changes | {"suspend": True}))

    assert found.actions == (ScaleDown(),)
    assert found.problem is not None
    assert found.problem.reason is Reason.INVALID_SPEC


@pytest.mark.parametrize("changes", EDITS)
def test_workers_that_were_suspended_do_not_start_with_an_invalid_spec(changes: dict[str, Any]) -> None:
    found = planned(edited(changes, children=deployment(0), pods=()))

    assert (found.actions, found.replicas) == ((), 0)


@pytest.mark.parametrize("changes", EDITS)
def test_a_first_apply_with_an_invalid_spec_creates_nothing(changes: dict[str, Any]) -> None:
    new = world(resource({}, **changes), tunnel=Missing(), destination=Missing(), children={}, pods=())

    assert (planned(new).actions, planned(new).replicas) == ((), 0)


def test_what_stops_workers_stops_them_whatever_else_is_wrong() -> None:
    assert planned(edited(NO_VOLUME, tunnel=Missing())).actions == (ScaleDown(),)


def test_an_invalid_spec_that_a_look_finds_is_not_rolled_out_behind_another_problem() -> None:
    found = planned(world(source_credentials=NO_SECRET, source=WRONG_ENDPOINT))

    assert found.problem == WRONG_ENDPOINT.problem
    assert found.actions == ()


def test_workers_are_not_rendered_from_a_document_that_none_takes() -> None:
    """The check of the spec finds it before; what renders does not rely on that."""
    of = edited(EMPTY_RANGE)

    found = consume(of, assessed(of), SETTINGS, None)

    assert found.problem is not None
    assert found.problem.reason is Reason.INVALID_SPEC
    assert not any(isinstance(action, ApplyObject) for action in found.actions)
