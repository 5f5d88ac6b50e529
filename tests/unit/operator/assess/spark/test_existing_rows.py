"""An object whose query brings existing rows before the changes: what is said while it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelStatus, Stage
from ots_tunnel_operator.api.status import TunnelObjectStatus
from ots_tunnel_operator.assess.spark.standstill import BATCH_SECONDS
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.stillness import observe_movement
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.query_worlds import (
    ALL_BY_QUERY,
    CLIENT,
    DRIVER,
    query_app,
    query_record,
    query_resource,
    query_status,
    query_world,
)
from tests.support.operator.worlds import NOW, base, channel, description, reported

OBJECT = query_resource(**ALL_BY_QUERY)
DONE = base("b1", ChannelStatus.TERMINATED, client="", rows=60)
LEFT = base("b2", client=CLIENT, rows=20)
WAITING = channel("c1", ChannelStatus.WAIT, client="")
BEGUN = NOW - 400


def bringing(*channels: Any, stage: str = Stage.BASE, age: float = 300, **changes: Any) -> World:
    """The object while its driver runs and has recorded a batch."""
    described = description(*(channels or (DONE, LEFT, WAITING)), stage=stage, create_time_ns=int(BEGUN * 1e9))
    children = query_app("RUNNING", of=OBJECT, age=age) | query_record()
    return query_world(children, of=OBJECT, tunnel=Tunnel(described), **changes)


def status_of(found: World) -> dict[str, Any]:
    status = reported(found)
    TunnelObjectStatus.model_validate(status)
    return status


def condition(status: dict[str, Any], kind: str) -> dict[str, str]:
    found: dict[str, str] = next(item for item in status["conditions"] if item["type"] == kind)
    return found


def test_existing_rows_are_counted_while_the_query_brings_them() -> None:
    status = status_of(bringing())

    assert status["phase"] == "BaseData"
    # half of the channels in 400 s
    assert status["base"] == {"percent": 50, "rows": 80, "done": 1, "total": 2, "etaSeconds": 400}
    ready = condition(status, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "BaseDataRunning")
    assert ready["message"].startswith("the query of Spark brings existing rows")
    # nobody can be late before changes are read
    assert "seconds" not in status["lag"]
    assert condition(status, "Degraded")["status"] == "False"


def test_nobody_knows_when_rows_are_there_that_no_driver_brings() -> None:
    waiting = replace(DRIVER, phase="Pending")

    assert "etaSeconds" not in status_of(bringing(query_pods=(waiting,)))["base"]


def test_changes_follow_the_existing_rows() -> None:
    followed = channel("c1", client=CLIENT, consumed=NOW - 2, rows=5)
    status = status_of(bringing(DONE, followed, stage=Stage.STREAM))

    assert status["phase"] == "Streaming"
    assert status["base"]["percent"] == 100
    assert condition(status, "Ready")["reason"] == "Consuming"
    assert status["lag"]["caughtUp"] is True


@pytest.mark.parametrize(("seconds", "degraded"), [(BATCH_SECONDS, "False"), (BATCH_SECONDS + 5, "True")])
def test_rows_that_do_not_come_are_a_standstill(seconds: float, degraded: str) -> None:
    """The trigger's interval, 5 s here, is no reason to be told."""
    cache = LoopCache()
    observe_movement(replace(_every(5), now=NOW - seconds), cache)
    found = observe_movement(_every(5), cache)

    status = status_of(found)

    assert condition(status, "Degraded")["status"] == degraded
    if degraded == "True":
        assert condition(status, "Degraded")["reason"] == condition(status, "Ready")["reason"] == "NotProgressing"
        assert "no batch of existing rows was committed for 600 s" in condition(status, "Ready")["message"]


def _every(interval: int) -> World:
    """A driver that runs for long and begins a batch every so many seconds."""
    found = bringing(age=7200)
    spark = found.resource.spec.spark_settings.model_copy(update={"trigger_interval_seconds": interval})
    spec = found.resource.spec.model_copy(update={"spark": spark})
    body = found.resource.object.model_copy(update={"spec": spec})
    return replace(found, resource=replace(found.resource, object=body))


def test_one_channel_that_moves_is_progress() -> None:
    cache = LoopCache()
    observe_movement(replace(bringing(age=7200), now=NOW - 2 * BATCH_SECONDS), cache)
    moved = bringing(DONE, replace(LEFT, rows=21), base("b3", client=CLIENT), WAITING, age=7200)

    assert condition(status_of(observe_movement(moved, cache)), "Degraded")["status"] == "False"


def test_the_time_without_a_driver_is_no_standstill() -> None:
    cache = LoopCache()
    observe_movement(replace(bringing(age=7200, query_pods=()), now=NOW - 2 * BATCH_SECONDS), cache)
    observe_movement(replace(bringing(age=7200, query_pods=()), now=NOW - 20), cache)

    assert condition(status_of(observe_movement(bringing(age=7200), cache)), "Degraded")["status"] == "False"


@pytest.mark.parametrize("age", [1800, 2000, 86400])
def test_a_driver_that_froze_while_it_brought_rows_stays_told(age: float) -> None:
    """Also once its record is so old that nobody knows what it does."""
    children = query_app("RUNNING", of=OBJECT, age=age + 100) | query_record(age=age)
    driver = replace(DRIVER, started=NOW - age - 60)
    cache, found = LoopCache(), replace(bringing(age=7200, query_pods=(driver,)), children=children)
    observe_movement(replace(found, now=NOW - age), cache)

    assert condition(status_of(observe_movement(found, cache)), "Degraded")["reason"] == "NotProgressing"


def test_a_new_operator_does_not_blame_a_driver_that_has_just_begun() -> None:
    """The status tells of a pod that waited until a moment ago."""
    conditions = [{"type": "Degraded", "status": "True", "reason": "NotProgressing"}]
    of = query_resource(query_status(conditions=conditions), **ALL_BY_QUERY)
    found = bringing(age=310, query_pods=(replace(DRIVER, started=NOW - 310),))
    found = replace(found, resource=of, children=query_app("RUNNING", of=of, age=310) | query_record())

    assert condition(status_of(observe_movement(found, LoopCache())), "Degraded")["status"] == "False"
