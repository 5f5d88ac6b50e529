"""What `kubectl ott` says about the number of workers."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.why.capacity import capacity
from ots_tunnel_operator.plugin.why.view import why_lines
from tests.support.operator.plugin_objects import NOW, body, status

DECISION = {
    "time": "2026-11-20T07:15:30Z",
    "from": 4,
    "to": 6,
    "reason": "Backlog",
    "message": "lag 143 s (target 60 s)",
}


def an_object(mode: str | None, replicas: int = 3, **autoscaling: Any) -> Ott:
    changes: dict[str, Any] = {} if mode is None else {"autoscaling": {"mode": mode, "maxReplicas": 8}}
    document = body(replicas=replicas, **changes)
    document["status"] = status(autoscaling=autoscaling)
    return Ott(document)


def said(ott: Ott) -> str:
    return "\n".join(why_lines(ott, Screen(width=200), NOW))


@pytest.mark.parametrize(
    ("mode", "replicas", "record", "wanted"),
    [
        (None, 3, {"desiredReplicas": 3}, 3),
        ("Auto", 3, {"desiredReplicas": 6, "specReplicas": 3}, 6),
        ("Auto", 9, {"desiredReplicas": 6, "specReplicas": 3}, 6),
        ("Auto", 0, {"desiredReplicas": 6, "specReplicas": 3}, 0),
        ("Advise", 3, {"desiredReplicas": 6, "specReplicas": 3}, 6),
        ("Advise", 4, {"desiredReplicas": 6, "specReplicas": 3}, 4),
    ],
)
def test_the_wanted_number_is_that_of_the_operator(
    mode: str | None, replicas: int, record: dict[str, int], wanted: int
) -> None:
    assert an_object(mode, replicas, **record).wanted_workers == wanted


def test_the_last_decision_has_its_figures() -> None:
    text = said(an_object("Auto", desiredReplicas=6, specReplicas=3, lastDecision=DECISION))

    assert "1 h ago, ScaledUp: from 4 to 6 workers, Backlog: lag 143 s (target 60 s)" in text


def test_one_that_removed_workers_is_called_so() -> None:
    fewer = DECISION | {"from": 6, "to": 4, "reason": "Idle"}

    assert "ScaledDown: from 6 to 4 workers, Idle" in said(an_object("Auto", lastDecision=fewer))


def test_what_the_load_asks_for_and_what_limits_it() -> None:
    text = said(an_object("Auto", desiredReplicas=6, specReplicas=3, recommendedReplicas=9, limitedBy="Channels"))

    assert "The load asks for 9 workers (Auto); it has 6; limited by Channels." in text


def test_advise_says_that_it_changes_nothing() -> None:
    text = said(an_object("Advise", desiredReplicas=3, recommendedReplicas=2, limitedBy="None"))

    assert "The load asks for 2 workers (Advise); Advise changes nothing." in text


@pytest.mark.parametrize(("mode", "record"), [(None, {"desiredReplicas": 3}), ("Auto", {"desiredReplicas": 3})])
def test_without_a_recommendation_nothing_is_said(mode: str | None, record: dict[str, int]) -> None:
    assert "The load asks" not in said(an_object(mode, **record))


def test_beside_auto_no_scaling_by_hand_is_advised() -> None:
    ott = an_object("Auto", desiredReplicas=4, specReplicas=3)

    first, _ = capacity(ott)

    assert "The operator decides the number of workers, 4 at present and at most 8" in first.text
    assert not any("scale" in command for command in first.commands)
