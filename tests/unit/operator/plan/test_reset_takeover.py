"""A request that takes over another one, and an adopted tunnel: the next tunnel is the one that was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelId, StreamConfig, TunnelId, TunnelType
from ots_tunnel_operator.kube.kinds import CONFIG_MAP
from ots_tunnel_operator.plan.actions import CreateTunnel, DeleteObject, RecordStatus
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.spark_worlds import NAME, SPARK, progress_record, spark_application
from tests.support.operator.worlds import COPY, FRESH, NOW, channel, description, planned, recorded
from tests.unit.operator.plan.test_reset import (
    FORGOTTEN,
    NEW_BASE,
    REWIND,
    RUNNING,
    copied,
    going_on,
    records,
    suspended,
)

LONG_AGO, EARLIER = timestamp(NOW - 7000), timestamp(NOW - 3700)
#: A rewind that has forgotten the former tunnel, and whose start the service does not take.
STUCK = FORGOTTEN | {
    "tunnel": {"startFrom": "Timestamp", "startTime": LONG_AGO},
    "reset": REWIND | RUNNING | {"startTime": LONG_AGO},
    "lost": {"what": "Changes", "from": timestamp(NOW - 9000), "to": LONG_AGO},
}
ADOPT = {"token": "t", "form": "NewTunnel", "existingTunnel": "Adopt"}
RESTORED = Tunnel(
    description(channel("c9", client="", consumed=NOW - 10), kind=TunnelType.Stream, tunnel_id=TunnelId("another")),
    {ChannelId("c9"): FRESH},
)
ROWS = Table(COPY, empty=False)


def merged(before: dict[str, Any], change: Any) -> dict[str, Any]:
    """A merge patch."""
    found = dict(before)
    for key, value in change.items():
        found[key] = merged(found.get(key) or {}, value) if isinstance(value, dict) else value
    return {key: value for key, value in found.items() if value is not None}


def followed(of: World) -> World:
    """The world after what its plan records."""
    status = dict(of.resource.status)
    for action in planned(of).actions:
        if isinstance(action, RecordStatus):
            status = merged(status, action.change)
    return replace(of, resource=replace(of.resource, status=status))


@pytest.mark.parametrize(
    ("asked", "kind", "start", "lost"),
    [
        (NEW_BASE, TunnelType.BaseAndStream, None, "Deletions"),
        (
            REWIND | {"startTime": EARLIER},
            TunnelType.Stream,
            StreamConfig(earliest=False, start_offset_ns=int((NOW - 3700) * 1e9), end_offset_ns=0),
            None,
        ),
        ({"form": "NewTunnel"}, TunnelType.Stream, StreamConfig(False, 0, 0), "Changes"),
    ],
)
def test_a_request_that_takes_over_gets_its_own_tunnel_and_its_own_loss(
    asked: dict[str, Any], kind: TunnelType, start: StreamConfig | None, lost: str | None
) -> None:
    begun = followed(suspended({**asked, "token": "u"}, STUCK, tunnel=Missing()))
    create = planned(begun).actions[1]

    assert begun.resource.status["reset"]["token"] == "u"
    assert begun.resource.status["reset"]["earlierTokens"] == ["t"]
    assert isinstance(create, CreateTunnel)
    assert (create.type, create.stream) == (kind, start)
    assert begun.resource.status.get("lost", {}).get("what") == lost


def test_a_copy_by_spark_begins_anew_where_existing_rows_take_over() -> None:
    left = spark_application("COMPLETED") | progress_record(4, 4)
    stuck = STUCK | {"snapshot": copied()}
    begun = followed(suspended({**NEW_BASE, "token": "u"}, stuck, tunnel=Missing(), children=left, **SPARK))

    assert "snapshot" not in begun.resource.status
    assert DeleteObject(CONFIG_MAP, NAME) in planned(begun).actions


def test_what_somebody_else_holds_is_deleted_once() -> None:
    """An application with a finalizer of somebody else's stays: to delete it in each step would never end."""
    left = spark_application("COMPLETED")
    for found in left.values():
        found["metadata"]["deletionTimestamp"] = timestamp(NOW - 5)
    stuck = recorded(snapshot=copied())
    plan = planned(going_on(NEW_BASE, stuck, tunnel=Missing(), children=left, **SPARK))

    assert (plan.actions, plan.again) == ((), False)
    assert plan.wait is not None
    assert plan.wait.message == f"the reset waits: {NAME}, of the former copy, is being removed"


def test_an_annotation_that_is_put_back_takes_over_nothing() -> None:
    stuck = STUCK | {"reset": STUCK["reset"] | {"token": "u", "earlierTokens": ["t"]}}

    put_back = followed(suspended(NEW_BASE, stuck, tunnel=Missing()))

    assert put_back.resource.status["reset"] == stuck["reset"]


@pytest.mark.parametrize(
    ("stored", "spec"),
    [
        (recorded(snapshot=copied()), SPARK),
        (recorded(tunnel=recorded()["tunnel"] | {"startFrom": "Latest"}), {}),
    ],
    ids=["after a copy by Spark", "after a reset"],
)
def test_a_tunnel_that_is_adopted_is_for_changes_alone(stored: dict[str, Any], spec: dict[str, Any]) -> None:
    done = suspended(ADOPT, stored, tunnel=RESTORED, destination=ROWS, **spec)
    for _ in range(3):
        done = followed(done)
    status = done.resource.status

    assert (status["reset"]["state"], status["tunnel"]["id"]) == ("Done", "another")
    assert status["tunnel"]["startFrom"] == "Latest"
    assert planned(done).problem is None
    assert not done.resource.uses_spark


def test_a_copy_by_spark_that_may_still_write_is_not_over() -> None:
    """Changes that follow it at once could be overwritten by its last rows."""
    writing = recorded(snapshot=copied(state="FAILED"))
    left = spark_application("COMPLETED", ended=NOW - 1) | progress_record(4, 4)
    found = records(planned(suspended(REWIND, writing, children=left, destination=ROWS, **SPARK)))

    assert found["state"] == "Refused"
    assert "it is not known whether every existing row was copied" in found["message"]
