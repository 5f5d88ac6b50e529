"""What is known to be missing keeps an object from saying that every change is delivered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage, TunnelType
from ots_tunnel_operator import names
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    base,
    channel,
    description,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

END = NOW - 60
WINDOW = {"startFrom": "Latest", "endTime": timestamp(END)}
GAP = {"channel": "c1", "from": timestamp(NOW - 2000), "to": timestamp(NOW - 1000), "foundBy": "Worker"}
REFUSED = {"records": 17, "keys": 3, "lastTime": timestamp(NOW - 60)}
LOST = {"what": "Changes", "from": timestamp(NOW - 2000), "to": timestamp(NOW - 1000)}


def ended(status: dict[str, Any], **changes: Any) -> World:
    """An object whose worker has read everything up to the end time."""
    of = resource(recorded(**status), source__tunnel__stream=WINDOW, **changes)
    done = pod("pod-1", report_channel("c1", end_reached=True, consumed_up_to=END + 1))
    assert done.report is not None
    done = replace(done, report=replace(done.report, completed=True))
    return world(of, pods=(done,), tunnel=Tunnel(description(channel("c1", consumed=END + 1)), same_since=NOW - 60))


def said(found: World) -> dict[str, tuple[str, str, str]]:
    conditions = reported(found)["conditions"]
    return {item["type"]: (item["status"], item["reason"], item["message"]) for item in conditions}


def copied(status: dict[str, Any], seconds: float, *, asked: bool, policy: str = "Skip", alive: bool = True) -> World:
    """An object that copies existing rows, in a look some seconds after the first one that found every row read."""
    kind = {"source__tunnel__type": "BaseData", "delivery": {"onPermanentError": policy}}
    done = description(base("b1", ChannelStatus.TERMINATED), stage=Stage.BASE, kind=TunnelType.BaseData)
    worker = pod("pod-1") if asked else replace(pod("pod-1"), report=None)
    waiting = pod("pod-2", ready=False, phase="Pending")
    of = resource(recorded(**status), replicas=2, **kind)
    return world(of, pods=(worker, waiting) if alive else (), tunnel=Tunnel(done, same_since=NOW - seconds))


@pytest.mark.parametrize(
    ("seconds", "asked", "policy", "completed"),
    [
        (0, True, "Fail", True),
        (0, True, "Skip", False),
        (15, True, "Skip", True),
        (15, False, "DeadLetter", False),
        (15, False, "Fail", True),
        (60, False, "Skip", True),
    ],
    ids=["none is refused", "asked before the end", "asked after it", "silent", "nothing to ask", "silent for long"],
)
def test_workers_are_asked_after_the_end_what_they_have_refused(
    seconds: float, asked: bool, policy: str, completed: bool
) -> None:
    """Completion removes them, and with them what they have counted."""
    assert (said(copied({}, seconds, asked=asked, policy=policy))["Completed"][0] == "True") is completed


def test_workers_that_are_silent_because_they_are_suspended_have_refused_nothing_yet() -> None:
    of = copied({}, 60, asked=False)
    suspended = resource(
        recorded(), suspend=True, source__tunnel__type="BaseData", delivery={"onPermanentError": "Skip"}
    )

    assert "refused" not in reported(replace(of, resource=suspended))


def test_what_silent_workers_have_refused_is_not_known() -> None:
    found = reported(copied({}, 60, asked=False))
    left = copied({key: found[key] for key in ("refused", "conditions")}, 600, asked=False, alive=False)
    later = said(left)

    assert found["refused"] == {"records": 0, "keys": 0, "lastTime": timestamp(NOW), "unknownWorkers": 1}
    told = {item["type"]: (item["status"], item["reason"]) for item in found["conditions"]}
    for name in ("Ready", "Completed", "Degraded"):
        assert told[name] == ("True", "CompletedWithLoss")
        # the pods are gone, and it stays
        assert later[name][:2] == ("True", "CompletedWithLoss")
        assert "what workers refused that did not answer at the end is not known" in later[name][2]
    left.resource.object.metadata.annotations[names.ANNOTATION_ACCEPT_REFUSED] = "0"
    assert said(left)["Degraded"][0] == "False"


@pytest.mark.parametrize(
    ("status", "degraded", "named"),
    [
        ({"lost": LOST}, ("True", "CompletedWithLoss"), "status.lost"),
        ({"lost": {"what": "Changes"}}, ("True", "CompletedWithLoss"), "a time that is not known"),
        ({"possibleGaps": [GAP | {"accepted": True}]}, ("False", "AsExpected"), "status.possibleGaps"),
        ({"possibleGaps": [GAP | {"accepted": True}], "lost": LOST}, ("True", "CompletedWithLoss"), "status.lost"),
    ],
    ids=["lost", "unknown times", "accepted", "accepted and lost"],
)
def test_an_object_that_lacks_changes_completes_with_a_loss(
    status: dict[str, Any], degraded: tuple[str, str], named: str
) -> None:
    found = said(ended(status))

    assert found["Completed"][:2] == found["Ready"][:2] == ("True", "CompletedWithLoss")
    assert found["Degraded"][:2] == degraded
    for kind in ("Completed", "Ready"):
        assert named in found[kind][2]
        assert "every change" not in found[kind][2]


@pytest.mark.parametrize(
    ("accepted", "degraded"),
    [("", ("True", "RecordsRefused")), ("17", ("False", "AsExpected"))],
    ids=["not accepted", "accepted"],
)
@pytest.mark.parametrize("policy", ["Skip", "DeadLetter"])
def test_an_object_whose_sink_has_refused_records_lacks_them(
    policy: str, accepted: str, degraded: tuple[str, str]
) -> None:
    place = {"url": "s3://letters", "region": "r", "credentials": {"secretRef": {"name": "letters"}}}
    letters = {"delivery__deadLetter": {"files": place}} if policy == "DeadLetter" else {}
    done = ended({"refused": REFUSED}, delivery__onPermanentError=policy, **letters)
    metadata = done.resource.object.metadata.model_copy(
        update={"annotations": {names.ANNOTATION_ACCEPT_REFUSED: accepted}}
    )
    of = replace(done.resource, object=done.resource.object.model_copy(update={"metadata": metadata}))

    found = said(replace(done, resource=of))

    assert found["Degraded"][:2] == degraded
    for kind in ("Completed", "Ready"):
        assert found[kind][:2] == ("True", "CompletedWithLoss")
        assert "records that the sink refused were left out (status.refused)" in found[kind][2]
        assert ("into delivery.deadLetter" in found[kind][2]) == (policy == "DeadLetter")


def test_what_was_refused_is_named_beside_what_was_not_read() -> None:
    found = said(ended({"lost": LOST, "refused": REFUSED}))

    assert found["Degraded"][:2] == ("True", "CompletedWithLoss")
    assert "status.lost" in found["Completed"][2]
    assert "status.refused" in found["Completed"][2]


def test_an_object_that_lacks_nothing_completes_without_a_loss() -> None:
    found = said(ended({}))

    assert found["Completed"][:2] == ("True", "EndTimeReached")
    assert found["Ready"][:2] == ("True", "Completed")


def test_what_has_completed_with_a_loss_stays_completed() -> None:
    before = ended({"lost": LOST})
    status = reported(before)
    of = resource(status, source__tunnel__stream=WINDOW)

    found = said(replace(before, resource=of, pods=(), tunnel=Tunnel(description())))

    assert found["Completed"][:2] == ("True", "CompletedWithLoss")


def test_a_gap_that_is_not_accepted_is_no_delivery() -> None:
    status = {"possibleGaps": [GAP], "conditions": [{"type": "Completed", "status": "True"}]}
    found = said(ended(status))

    assert found["Completed"][:2] == ("True", "CompletedWithLoss")
    assert found["Degraded"][:2] == ("True", "PossibleGap")


def test_what_a_reset_was_to_lose_was_accepted_with_it() -> None:
    """Only an object without an end time gets such a reset."""
    of = resource(recorded(lost={"what": "Deletions"}), source__tunnel__type="BaseData")
    tunnel = Tunnel(description(base("b1", ChannelStatus.TERMINATED, client=""), kind=TunnelType.BaseData))
    found = said(world(of, tunnel=tunnel))

    assert found["Completed"][:2] == ("True", "CompletedWithLoss")
    assert "deletions" in found["Completed"][2]
    assert found["Degraded"][0] == "False"


@pytest.mark.parametrize(("accepted", "policy"), [(True, "Continue"), (True, "Stop"), (False, "Stop")])
def test_nothing_is_caught_up_behind_a_gap(accepted: bool, policy: str) -> None:
    status = recorded(possibleGaps=[GAP | {"accepted": accepted}])
    found = reported(world(resource(status, source__tunnel__onPossibleGap=policy)))

    assert found["lag"]["caughtUp"] is False
