"""Who rolls, who waits, and in which order, from the statuses of all objects."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.observe.rollouts import Rollouts
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import RolloutTurn
from tests.support.operator.objects import tunnel_object


def body(uid: str, reason: str = "", since: str = "2026-01-01T00:00:00Z", *, status: str = "True") -> dict[str, Any]:
    found = tunnel_object()
    found["metadata"]["uid"] = uid
    entry = {"type": "Progressing", "status": status, "reason": reason, "lastTransitionTime": since}
    return found | {"status": {"conditions": [entry]} if reason else {}}


def turn(rollouts: Rollouts, of: dict[str, Any]) -> RolloutTurn:
    return rollouts.turn(Resource(TablestoreTunnel.from_body({**of, "status": {}}), of["status"]))


def all_of(*bodies: dict[str, Any], release: str = "worker:2") -> Rollouts:
    rollouts = Rollouts(release)
    for each in bodies:
        rollouts.changed(each)
    return rollouts


def test_others_that_roll_and_that_have_waited_longer_count() -> None:
    mine = body("me", "RolloutWaiting", "2026-01-01T00:00:05Z")
    rollouts = all_of(
        mine,
        body("a", "RollingWorkers"),
        body("b", "RolloutWaiting", "2026-01-01T00:00:04Z"),
        body("c", "RolloutWaiting", "2026-01-01T00:00:06Z"),
        body("d", "Scaling"),
        body("e", "RollingWorkers", status="Unknown"),
        body("f"),
    )

    assert turn(rollouts, mine) == RolloutTurn(rolling=1, ahead=1)


def test_a_draw_decides_between_those_of_one_second() -> None:
    waiting = [body(f"uid-{number}", "RolloutWaiting") for number in range(8)]

    orders = [[turn(all_of(*waiting, release=release), one).ahead for one in waiting] for release in ("1", "2")]

    assert [sorted(order) for order in orders] == [list(range(8))] * 2
    assert orders[0] != orders[1]


def test_who_has_rolled_or_is_gone_counts_no_more() -> None:
    mine, other, third = body("me"), body("a", "RollingWorkers"), body("b", "RolloutStuck")
    rollouts = all_of(mine, other, third, body("c", "RollingWorkers"))
    rollouts.changed(body("c", "AsExpected", status="False"))
    assert turn(rollouts, mine) == RolloutTurn(rolling=1)

    rollouts.deleted(other)
    rollouts.deleted(other)
    assert turn(rollouts, mine) == RolloutTurn()


def test_objects_of_another_operator_take_no_place() -> None:
    mine, other = body("me"), body("a", "RollingWorkers")
    other["metadata"]["annotations"] = {names.ANNOTATION_OPERATOR: "other/lease"}

    assert turn(all_of(other), mine) == RolloutTurn()
    mine["metadata"]["annotations"] = dict(other["metadata"]["annotations"])
    assert turn(all_of(other), mine) == RolloutTurn(rolling=1)
