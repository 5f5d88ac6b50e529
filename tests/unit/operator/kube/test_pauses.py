"""Pauses that the API server asks for."""

from __future__ import annotations

from ots_tunnel_operator.kube.pauses import LONGEST_SECONDS, Pauses


def test_a_call_waits_for_the_rest_of_its_pause_and_no_other_call_does() -> None:
    now = 100.0
    pauses = Pauses(lambda: now)
    pauses.ask("GET /a", 5.0)

    now = 103.0

    assert (pauses.left("GET /a"), pauses.left("GET /b")) == (2.0, 0.0)
    now = 106.0
    assert pauses.left("GET /a") == 0.0


def test_no_pause_is_longer_than_a_minute_and_one_that_is_over_is_forgotten() -> None:
    now = 100.0
    pauses = Pauses(lambda: now)
    pauses.ask("GET /a", 5.0)
    now = 105.0

    pauses.ask("GET /b", 86_400.0)

    assert pauses.left("GET /b") == LONGEST_SECONDS
    now = 101.0
    assert pauses.left("GET /a") == 0.0


def test_a_shorter_pause_does_not_end_a_longer_one_of_the_same_call() -> None:
    now = 100.0
    pauses = Pauses(lambda: now)
    pauses.ask("WATCH /secrets", 25.0)

    # two watches of one path by different names, each with an answer of its own
    pauses.ask("WATCH /secrets", 8.0)

    assert pauses.left("WATCH /secrets") == 25.0
