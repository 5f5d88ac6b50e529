"""Until when everything was delivered is a bound, or unknown; never a guess."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.model import Stage
from ots_tunnel.protocol.http.rpc import MOST_APART
from ots_tunnel_operator.reset.status_facts import SKEW_SECONDS, STREAM_STAGE, delivered_until, is_past_base, kept_since
from ots_tunnel_operator.times import timestamp

NOW = 1_800_000_000.0
CREATED, CONSUMED, GONE, MARKED, GAP = NOW - 900, NOW - 100, NOW - 200, NOW - 300, NOW - 500


def status(**changes: Any) -> dict[str, Any]:
    """Of a tunnel of which nothing is consumed."""
    return {"tunnel": {"id": "t-1", "createdTime": timestamp(CREATED)}} | changes


def tunnel(**changes: Any) -> dict[str, Any]:
    return status()["tunnel"] | changes


LAG = {"consumedUpTo": timestamp(CONSUMED)}
TIMES: dict[str, tuple[dict[str, Any], float | None]] = {
    "nothing consumed": (status(), CREATED),
    "consumed": (status(lag=LAG), CONSUMED),
    "gone": (status(tunnel=tunnel(consumedUpTo=timestamp(GONE))), GONE),
    "marked": (status(readUntil={"tunnelId": "t-1", "time": timestamp(MARKED)}), MARKED),
    "a mark of another tunnel": (status(readUntil={"tunnelId": "t-2", "time": timestamp(MARKED)}), CREATED),
    "the latest bound": (status(lag=LAG, tunnel=tunnel(consumedUpTo=timestamp(GONE))), CONSUMED),
    "a gap": (status(lag=LAG, possibleGaps=[{"from": timestamp(GAP), "accepted": True}]), GAP),
    "lost before": (status(lag=LAG, lost={"what": "Changes", "from": timestamp(GAP)}), GAP),
    "lost before, unknown": (status(lag=LAG, lost={"what": "Changes"}), None),
    "rewound, nothing consumed": (
        status(tunnel=tunnel(startFrom="Timestamp", startTime=timestamp(NOW - 5000))),
        NOW - 5000,
    ),
    "rewound to the oldest, nothing consumed": (status(tunnel=tunnel(startFrom="Earliest")), None),
    "forgotten": (
        {"reset": {"token": "a", "form": "NewBase", "state": "Running", "deliveredUntil": timestamp(GAP)}},
        GAP,
    ),
    "new": ({}, None),
}


@pytest.mark.parametrize("name", TIMES)
def test_delivered_until(name: str) -> None:
    found, until = TIMES[name]

    assert delivered_until(found, {}, None) == until


def test_what_a_look_measures_counts_as_well() -> None:
    assert delivered_until(status(lag=LAG), {}, NOW - 10) == NOW - 10


def test_the_begin_is_that_of_the_spec_where_no_reset_has_changed_it() -> None:
    window = {"startFrom": "Timestamp", "startTime": timestamp(NOW - 7000)}

    assert delivered_until(status(), window, None) == NOW - 7000
    assert delivered_until(status(tunnel=tunnel(startFrom="Latest")), window, None) == CREATED


@pytest.mark.parametrize(
    ("recorded", "known"),
    [
        ({"stage": "ProcessStream"}, True),
        ({"stage": "ProcessBaseData"}, False),
        ({"lastStage": "ProcessStream"}, True),
        ({}, None),
    ],
)
def test_whether_the_base_phase_was_over(recorded: dict[str, str], known: bool | None) -> None:
    assert is_past_base({"tunnel": recorded}) is known


def test_what_is_shared_with_the_rest_of_the_operator_is_equal() -> None:
    assert (STREAM_STAGE, SKEW_SECONDS) == (Stage.STREAM, MOST_APART)


def test_what_a_stream_keeps_allows_for_the_clocks() -> None:
    assert kept_since(3600, NOW) == NOW - 2700
    assert kept_since(None, NOW) is None
