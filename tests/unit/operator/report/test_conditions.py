"""Conditions keep their times, and events report only changes."""

from __future__ import annotations

import pytest

from ots_tunnel_operator.api.status import Condition
from ots_tunnel_operator.reasons import STALLED, STOPS_WORKERS, Reason
from ots_tunnel_operator.report.conditions import OF_AUTOSCALING, TYPES, ConditionValue, build
from ots_tunnel_operator.report.notices import Notice, notices, record_notices
from tests.support.operator.worlds import NOW

READY = {"Ready": ConditionValue(True, Reason.CONSUMING)}
LATE = {
    "Ready": ConditionValue(False, Reason.LAG_HIGH, "late"),
    "Degraded": ConditionValue(True, Reason.LAG_HIGH, "late"),
}


def test_every_type_is_there_from_the_first_write_on() -> None:
    found = build({}, (), generation=1, now=NOW)

    assert [condition["type"] for condition in found] == [kind for kind in TYPES if kind not in OF_AUTOSCALING]
    assert {condition["status"] for condition in found} == {"Unknown"}
    for condition in found:
        Condition.model_validate(condition)


def test_the_transition_time_changes_only_when_the_status_flips() -> None:
    first = build(READY, (), generation=1, now=NOW)
    again = build({"Ready": ConditionValue(True, Reason.COMPLETED)}, first, generation=2, now=NOW + 60)
    flipped = build(LATE, again, generation=2, now=NOW + 120)

    times = [found[0]["lastTransitionTime"] for found in (first, again, flipped)]
    assert times[0] == times[1] != times[2]
    assert again[0]["observedGeneration"] == 2


@pytest.mark.parametrize("message", ["", "the lag is high", "x" * 5000])
@pytest.mark.parametrize("reason", Reason)
def test_every_message_ends_with_the_place_of_its_paragraph(reason: Reason, message: str) -> None:
    (found,) = (
        item
        for item in build({"Ready": ConditionValue(False, reason, message)}, (), generation=1, now=NOW)
        if item["type"] == "Ready"
    )

    text, _, end = found["message"].rpartition("; see ")
    assert end == f"docs/operations.md#{reason.lower()}"
    assert text == message[: len(text)] or (text and not message)
    assert len(found["message"]) <= 1024


def test_an_event_is_posted_for_changes_only_and_once_per_reason() -> None:
    before = build(READY, (), generation=1, now=NOW)
    after = build(LATE | {"Stalled": ConditionValue(True, Reason.LAG_HIGH, "late")}, before, generation=1, now=NOW + 1)

    assert notices(before, after) == (Notice("Warning", "LagHigh", "late; see docs/operations.md#laghigh"),)
    assert notices(after, after) == ()
    assert notices(after, before) == (
        Notice("Normal", "Consuming", "Every channel has a worker; see docs/operations.md#consuming"),
    )


def test_a_rollout_has_an_event_at_its_begin_and_one_at_its_end() -> None:
    def progressing(status: bool, reason: Reason, message: str = "") -> list[dict[str, object]]:
        return build({"Progressing": ConditionValue(status, reason, message)}, (), generation=1, now=NOW)

    still = progressing(False, Reason.AS_EXPECTED)
    rolling = progressing(True, Reason.ROLLING_WORKERS, "rolling out 1 of 3")
    starting = progressing(True, Reason.STARTING_WORKERS)

    (begin,) = notices(still, rolling)
    assert (begin.kind, begin.reason) == ("Normal", "RollingWorkers")
    assert begin.message.startswith("rolling out 1 of 3; ")
    assert notices(rolling, progressing(True, Reason.ROLLING_WORKERS, "rolling out 2 of 3")) == ()
    assert [notice.reason for notice in notices(rolling, still)] == ["RolloutComplete"]
    assert notices(rolling, starting) == notices(starting, still) == ()


@pytest.mark.parametrize(("ours", "verb"), [(True, "Created"), (False, "Adopted")])
def test_what_is_recorded_for_the_first_time_has_an_event(ours: bool, verb: str) -> None:
    made = {"createdByOperator": ours}
    destination = made | {"ensuredTime": "t", "instance": "demo", "table": "flights_copy"}
    change = {"destination": destination, "tunnel": made | {"id": "t-1"}}

    assert [notice.reason for notice in record_notices(change, {})] == [f"Destination{verb}", f"Tunnel{verb}"]
    assert record_notices(change, change) == ()
    assert record_notices({"destination": {"createIntentTime": "t"}}, {}) == ()


def test_progress_is_no_warning() -> None:
    after = build({"TunnelReady": ConditionValue(False, Reason.CREATING_TUNNEL, "soon")}, (), generation=1, now=NOW)

    assert notices((), after) == ()


def test_a_message_is_cut_before_the_api_server_refuses_it() -> None:
    found = build({"Ready": ConditionValue(False, Reason.INTERNAL_ERROR, "x" * 9000)}, (), generation=1, now=NOW)

    Condition.model_validate(found[0])


@pytest.mark.parametrize("reason", sorted(STOPS_WORKERS))
def test_what_stops_workers_needs_a_human(reason: Reason) -> None:
    assert reason in STALLED
