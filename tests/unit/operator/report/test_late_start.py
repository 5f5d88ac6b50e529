"""A rewind to the oldest change loses what the stream drops before its tunnel is first read, and says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage, TunnelType
from ots_tunnel_operator.assess.read_mark import ReadMark
from ots_tunnel_operator.report.late_start import lost_so_far
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    SCHEMA,
    TUNNEL_ID,
    base,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

HOUR, DAY = 3600.0, 86_400.0
RETENTION = 7 * DAY
SOURCE = Table(SCHEMA, stream_retention_seconds=int(RETENTION))
DONE = {
    "state": "Done",
    "form": "Rewind",
    "token": "t",
    "tunnelId": TUNNEL_ID,
    "deliveredUntil": timestamp(NOW - 4 * DAY),
}
UNREAD = Tunnel(description(channel("c1", ChannelStatus.WAIT, client=""), kind=TunnelType.Stream))


def rewound(now: float, reset: dict[str, Any] | None = None, lost: dict[str, str] | None = None, **seen: Any) -> World:
    """A suspended object, some time after its reset."""
    status = recorded(reset=DONE | (reset or {})) | ({} if lost is None else {"lost": lost})
    status["tunnel"] = status["tunnel"] | {"startFrom": "Earliest"}
    rest = {"tunnel": UNREAD, "source": SOURCE, "pods": (), "children": deployment(0)}
    return world(resource(status, suspend=True), now=now, **(rest | seen))


def test_nothing_is_lost_while_the_stream_keeps_what_was_not_delivered() -> None:
    assert lost_so_far(rewound(NOW + 2 * DAY), None) is None


def test_what_the_stream_drops_before_the_first_read_is_lost() -> None:
    """The tunnel promises nothing from before its creation, so that neither worker nor operator finds a gap."""
    found = reported(rewound(NOW + 5 * DAY))

    assert found["lost"] == {
        "what": "Changes",
        "from": timestamp(NOW - 4 * DAY),
        "to": timestamp(NOW - 2 * DAY + HOUR),
    }
    again = rewound(NOW + 5 * DAY + 3000, lost=found["lost"])
    assert reported(again)["lost"] == found["lost"]


@pytest.mark.parametrize(
    ("lost", "start"),
    [
        ({"what": "Changes", "from": timestamp(NOW - 9 * DAY), "to": timestamp(NOW - 7 * DAY)}, NOW - 9 * DAY),
        ({"what": "Changes", "to": timestamp(NOW - 7 * DAY)}, None),
    ],
)
def test_what_was_lost_already_grows(lost: dict[str, str], start: float | None) -> None:
    found = lost_so_far(rewound(NOW + DAY, lost=lost), None)

    assert found is not None
    assert found.get("from") == (None if start is None else timestamp(start))
    assert found["to"] == timestamp(NOW - 6 * DAY + HOUR)


def test_the_clock_of_the_service_counts_where_it_is_ahead() -> None:
    ahead = replace(UNREAD, description=replace(UNREAD.description, service_time=NOW + 3 * DAY + 600))

    assert lost_so_far(rewound(NOW + 3 * DAY - 600), None) is None
    assert lost_so_far(rewound(NOW + 3 * DAY - 600, tunnel=ahead), None) is not None


@pytest.mark.parametrize(
    ("reset", "seen"),
    [
        ({"state": "Running"}, {}),
        ({"form": "NewTunnel"}, {}),
        ({"startTime": timestamp(NOW - DAY)}, {}),
        ({"tunnelId": "another"}, {}),
        ({}, {"tunnel": Missing()}),
        ({}, {"source": Missing()}),
        ({}, {"source": Table(SCHEMA)}),
        ({}, {"tunnel": Tunnel(description(channel("c1", consumed=NOW), kind=TunnelType.Stream))}),
        ({}, {"tunnel": Tunnel(description(channel("c1", ChannelStatus.TERMINATED), kind=TunnelType.Stream))}),
        ({}, {"pods": (pod("pod-1", report_channel("c1")),)}),
    ],
)
def test_another_reset_and_a_tunnel_that_was_read_lose_no_more(reset: dict[str, Any], seen: dict[str, Any]) -> None:
    assert lost_so_far(rewound(NOW + 5 * DAY, reset, **seen), None) is None


def test_a_read_mark_tells_that_it_was_read() -> None:
    assert lost_so_far(rewound(NOW + 5 * DAY), ReadMark(str(TUNNEL_ID), NOW + DAY)) is None


@pytest.mark.parametrize("told", [report_channel("c1", consumed_up_to=None)])
def test_a_worker_that_has_read_nothing_changes_nothing(told: Any) -> None:
    beside = Tunnel(description(channel("c1"), base("b1", ChannelStatus.TERMINATED), stage=Stage.STREAM))
    seen = {"pods": (pod("pod-1", told), replace(pod("pod-2"), report=None)), "tunnel": beside}

    assert lost_so_far(rewound(NOW + 5 * DAY, **seen), None) is not None
