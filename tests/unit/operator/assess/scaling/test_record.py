"""How many workers are wanted by what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.assess.scaling.record import (
    MAX_MESSAGE,
    begun,
    change_document,
    record_of,
    wanted_workers,
)
from ots_tunnel_operator.autoscale.decision import Cause, Change
from ots_tunnel_operator.autoscale.history import History, Shown
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.record import Record
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.resource import Resource
from tests.support.operator.scaled_worlds import by_auto
from tests.support.operator.worlds import NOW, recorded, resource


def an_object(mode: str | None, replicas: int, status: dict[str, Any] | None) -> Resource:
    block = {} if mode is None else {"autoscaling": {"mode": mode}}
    return resource(recorded(**({"autoscaling": status} if status else {})), replicas=replicas, **block)


@pytest.mark.parametrize(
    ("mode", "replicas", "status", "wanted"),
    [
        (None, 2, None, 2),
        (None, 2, {"desiredReplicas": 2}, 2),
        (None, 5, {"desiredReplicas": 2}, 5),
        ("Auto", 2, None, 2),
        ("Auto", 2, by_auto(6), 6),
        # another number in spec.replicas has no effect
        ("Auto", 9, by_auto(6), 6),
        # but 0 stops every worker
        ("Auto", 0, by_auto(6), 0),
        # the number stays after Auto, until spec.replicas is edited
        ("Disabled", 2, by_auto(6), 6),
        (None, 2, by_auto(6), 6),
        ("Advise", 2, by_auto(6), 6),
        ("Disabled", 3, by_auto(6), 3),
        ("Advise", 3, by_auto(6), 3),
        ("Disabled", 0, by_auto(6), 0),
        # one that sleeps does so only with Auto, which looks for what ends that
        ("Auto", 2, by_auto(0), 0),
        ("Disabled", 2, by_auto(0), 2),
        ("Advise", 2, by_auto(0), 2),
        # a release without the record kept half of it
        ("Auto", 4, {"specReplicas": 4}, 4),
    ],
)
def test_the_wanted_number(mode: str | None, replicas: int, status: dict[str, Any] | None, wanted: int) -> None:
    assert wanted_workers(an_object(mode, replicas, status)) == wanted


def test_the_record_has_the_last_change() -> None:
    assert record_of(an_object("Auto", 2, by_auto(6))) == Record(6, scaled=NOW - 7200, generation=3)


def test_the_record_has_a_scale_up_that_was_taken_back() -> None:
    found = record_of(an_object("Auto", 2, by_auto(6, reason="Ineffective")))

    assert found == Record(6, scaled=NOW - 7200, ineffective=NOW - 7200, generation=3)


@pytest.mark.parametrize(("generation", "ineffective"), [(3, NOW - 7200), (2, None)])
def test_a_scale_up_that_was_taken_back_before_an_edit_holds_nothing_back(
    generation: int, ineffective: float | None
) -> None:
    status = by_auto(6, reason="Ineffective")
    status["lastDecision"] = {**status["lastDecision"], "generation": generation}

    assert record_of(an_object("Auto", 2, status)).ineffective == ineffective


def test_what_is_shown_is_read_back() -> None:
    shown = {"recommendedReplicas": 5, "limitedBy": "Max", "usefulMaxReplicas": 8}

    assert begun(an_object("Auto", 2, shown)) == History(shown=Shown(5, Limit.MAX), blocked_channels=8)
    assert begun(an_object("Auto", 2, None)) == History()
    assert begun(an_object("Auto", 2, {"limitedBy": "OfANewerRelease"})).shown == Shown()


def test_a_long_message_is_cut() -> None:
    found = change_document(Change(1, 2, Cause.BUSY, "x" * 5000), an_object("Auto", 1, None), NOW)

    assert len(found["lastDecision"]["message"]) == MAX_MESSAGE


def test_a_sleep_is_recorded_for_one_generation() -> None:
    of = an_object("Auto", 2, None)

    found = change_document(Change(1, 0, Cause.ASLEEP, "nothing to read"), of, NOW)

    assert (found["desiredReplicas"], found["sleep"]) == (0, {"since": timestamp(NOW), "generation": 3})
    assert record_of(an_object("Auto", 2, found)).slept == NOW
    edited = found | {"sleep": {"since": timestamp(NOW), "generation": 2}}
    assert record_of(an_object("Auto", 2, edited)).slept is None
    assert record_of(an_object("Auto", 2, by_auto(0))).slept is None


def test_the_end_of_a_sleep_takes_its_record_back() -> None:
    change = Change(0, 1, Cause.WOKEN, "c1 has something to read")
    asleep = by_auto(0) | {"sleep": {"since": timestamp(NOW), "generation": 3}}

    assert change_document(change, an_object("Auto", 2, asleep), NOW)["sleep"] is None
    assert "sleep" not in change_document(change, an_object("Auto", 2, by_auto(0)), NOW)
