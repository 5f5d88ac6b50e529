"""Worlds of objects whose existing rows are copied by Spark."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

from ots_tunnel.model import ChannelId, TunnelType
from ots_tunnel.snapshot.record import DONE_KEY, LIST_KEY, PROGRESS_LABEL
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import FRESH, NOW, TUNNEL_ID, channel, description, recorded, resource, world

NAME = "flights-copy-snapshot"
SPARK = {"engine__baseData": "Spark"}
#: A stream of one channel whose first token is known.
READABLE = Tunnel(description(channel("c1", client=""), kind=TunnelType.Stream), {ChannelId("c1"): FRESH})
DRIVER = SparkPod(f"{NAME}-driver", "Succeeded", terminated=True, ended=NOW - 1000)

Children = dict[tuple[str, str], Any]


def progress_record(
    done: int,
    total: int,
    label: str = TUNNEL_ID,
    *,
    age: float = 900,
    omitted: int | None = None,
    write_deadline: float | None = 16.667,
) -> Children:
    """The progress record of a copy; `age` is the seconds since the driver's last write."""
    items = {DONE_KEY: base64.b64encode(bytes([2**done - 1])).decode()}
    metadata = {"name": NAME, "labels": {PROGRESS_LABEL: label}}
    data = {"total": str(total), "done": str(done), "label": label, "updated": timestamp(NOW - age)}
    data[LIST_KEY] = f"{NAME}-splits-1"
    if omitted is not None:
        data["omittedCells"] = str(omitted)
    if write_deadline is not None:
        data["writeDeadlineSeconds"] = str(write_deadline)
    return {("ConfigMap", NAME): {"metadata": metadata, "binaryData": items, "data": data}}


def spark_application(
    state: str,
    *,
    age: float = 300,
    ended: float | None = None,
    error: str = "",
    executors: tuple[str, ...] = (),
    **spec: Any,
) -> Children:
    """An application with a driver and executors; `ended` is the end of its last attempt."""
    status: dict[str, Any] = {
        "applicationState": {"state": state, "errorMessage": error},
        "driverInfo": {"podName": DRIVER.name},
        "executorState": dict.fromkeys(executors, "COMPLETED"),
    }
    if ended is not None:
        status["terminationTime"] = timestamp(ended)
    metadata = {"name": NAME, "creationTimestamp": timestamp(NOW - age)}
    return {("SparkApplication", NAME): {"metadata": metadata, "spec": spec, "status": status}}


def spark_world(children: Children, status: dict[str, Any] | None = None, **changes: Any) -> World:
    """An object whose tunnel can be read; `changes` replace what was observed."""
    found = world(resource(status or recorded(), **SPARK), tunnel=READABLE, children=children, pods=())
    return replace(found, **changes)
