"""The catalogue of reasons."""

from __future__ import annotations

import re

from ots_tunnel_operator.reasons import DESCRIPTIONS, PASSING, STALLED, STOPS_WORKERS, Problem, Reason


def test_every_reason_has_a_description_of_one_line() -> None:
    assert list(DESCRIPTIONS) == list(Reason)
    for value, description in DESCRIPTIONS.items():
        # OOMKilled is the word of Kubernetes
        assert re.fullmatch(r"(OOM)?([A-Z][a-z]+)+", value)
        assert description.endswith(".")
        assert "\n" not in description


def test_a_reason_that_stops_workers_needs_a_human() -> None:
    assert STOPS_WORKERS <= STALLED
    assert not PASSING & STALLED
    assert Problem(Reason.TUNNEL_EXPIRED, "").stalled
    assert Problem(Reason.TUNNEL_EXPIRED, "").stops_workers
    assert not Problem(Reason.LAG_HIGH, "").stalled
