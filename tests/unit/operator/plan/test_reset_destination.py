"""A reset for changes alone, where the table with the existing rows is gone: nothing would ever copy them again."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel.model import ChannelId, ChannelStatus, StreamConfig, TunnelId, TunnelType
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import exact_timestamp, timestamp
from ots_tunnel_operator.world.absence import Missing, Unread
from ots_tunnel_operator.world.service import Table, Tunnel
from tests.support.operator.worlds import (
    COPY,
    FRESH,
    NOW,
    PLACE,
    channel,
    deployment,
    description,
    planned,
    recorded,
    resource,
    world,
)
from tests.unit.operator.plan.test_reset import FORGOTTEN, REWIND, going_on, records, suspended

#: The tunnel is gone, too, so that no verdict tells of the destination.
GONE = recorded(tunnel=recorded()["tunnel"] | {"lastStage": "ProcessStream", "consumedUpTo": timestamp(NOW - 60)})
STREAM = {"source__tunnel__type": "Stream"}
CREATED = PLACE | {"ensuredTime": timestamp(NOW - 890), "createdTime": exact_timestamp(NOW - 890.0)}


@pytest.mark.parametrize(
    "found",
    [Missing(), Table(COPY, empty=True), Table(COPY, empty=False, created=NOW - 5.0)],
    ids=["dropped", "emptied", "created anew"],
)
@pytest.mark.parametrize("asked", [REWIND, {"token": "t", "form": "NewTunnel"}], ids=["rewind", "new tunnel"])
def test_changes_alone_are_refused_where_the_copied_rows_are_gone(asked: dict[str, Any], found: Any) -> None:
    now = suspended(asked, GONE | {"destination": CREATED}, tunnel=Missing(), destination=found)

    assert "the rows in the destination are lost" in records(planned(now))["message"]


def test_what_was_delivered_to_a_table_that_is_gone_counts_as_lost() -> None:
    now = suspended({"token": "t", "form": "NewTunnel"}, GONE, tunnel=Missing(), destination=Missing(), **STREAM)
    empty = suspended(REWIND, GONE, tunnel=Missing(), destination=Table(COPY, empty=True), **STREAM)

    assert "It loses changes: what was committed since a time that is not known" in records(planned(now))["message"]
    assert "It loses nothing" in records(planned(empty))["message"]


def test_a_sink_that_is_no_table_has_none_to_be_lost() -> None:
    web = {"sink__tablestore": None, "sink__http": {"url": "https://sink.example/rows"}}
    stored = {key: value for key, value in GONE.items() if key != "destination"}
    now = suspended(REWIND, stored, tunnel=Missing(), destination=Unread(), **web)

    assert records(planned(now))["state"] == "Running"


UNMOVED = Tunnel(
    description(
        channel("c1", ChannelStatus.WAIT, client=""),
        kind=TunnelType.Stream,
        tunnel_id=TunnelId("next"),
        stream=StreamConfig(earliest=True),
    ),
    {ChannelId("c1"): FRESH},
)


@pytest.mark.parametrize("found", [Missing(), Table(COPY, empty=False, created=NOW - 5.0)], ids=["gone", "anew"])
def test_a_table_that_is_dropped_after_the_reset_is_not_created_anew_and_filled_with_changes(found: Any) -> None:
    rewound = recorded(tunnel=recorded()["tunnel"] | {"id": "next", "startFrom": "Earliest"}, destination=CREATED)
    seen = {"tunnel": UNMOVED, "destination": found, "pods": (), "children": deployment(0)}
    plan = planned(world(resource(rewound), **seen))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert "kubectl ott reset flights-copy -n default --new-base --delete-tunnel" in plan.problem.message
    assert planned(world(resource(rewound, **STREAM), **seen)).problem is None


def test_a_table_that_is_dropped_while_a_reset_runs_holds_the_reset() -> None:
    forgotten = FORGOTTEN | {"tunnel": {"startFrom": "Earliest"}}
    plan = planned(going_on(REWIND, forgotten, tunnel=Missing(), destination=Missing()))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.DESTINATION_BEHIND_TUNNEL
    assert "`kubectl ott reset flights-copy -n default --new-base`" in plan.problem.message
