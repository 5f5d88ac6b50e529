"""What a pass that observed nothing leaves standing."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.assess.verdict import LASTING, recorded_verdict
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.report.unobserved import unobserved_status
from tests.support.operator.worlds import NOW

REFUSED = Problem(Reason.API_SERVER_REFUSED, "503")


def stalled(reason: str, problem: Problem = REFUSED) -> dict[str, Any]:
    """The status after such a pass over an object that was Stalled."""
    before: dict[str, Any] = {
        "conditions": [{"type": "Stalled", "status": "True", "reason": reason, "message": "as found"}]
    }
    if reason in LASTING:
        before["verdict"] = {"reason": reason, "message": "as found"}
    return unobserved_status(before, problem, generation=1, observed=None, now=NOW)


def value(status: dict[str, Any]) -> tuple[str, str]:
    found = next(item for item in status["conditions"] if item["type"] == "Stalled")
    return found["status"], found["reason"]


@pytest.mark.parametrize("reason", list(LASTING))
def test_a_verdict_that_lasts_stays(reason: Reason) -> None:
    status = stalled(reason)

    assert value(status) == ("True", reason)
    verdict = recorded_verdict(status)
    assert verdict is not None
    assert verdict.stops_workers


def test_another_verdict_is_unknown() -> None:
    assert value(stalled("AccessDenied")) == ("Unknown", "ApiServerRefused")


def test_a_spec_that_cannot_be_read_is_the_newer_verdict() -> None:
    assert value(stalled("TunnelNotFound", Problem(Reason.INVALID_SPEC, "no"))) == ("True", "InvalidSpec")
