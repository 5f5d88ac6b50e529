"""Worlds of objects whose changes are followed by a query of Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ots_tunnel.model import TunnelType
from ots_tunnel.query.record import QueryProgress, query_items
from ots_tunnel.snapshot.record import PROGRESS_LABEL
from ots_tunnel_operator.kube.drift import stamped
from ots_tunnel_operator.plan.query import query_objects
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import SparkPod
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import NOW, SETTINGS, TUNNEL_ID, channel, description, resource, world

NAME = "flights-copy-stream"
CLIENT = "01234567-spark-1a2b-1"


def mounting(container: str, claim: str = "lake", path: str = "/lake") -> dict[str, Any]:
    """A pod template that mounts a claim into a container."""
    mount = {"name": "files", "mountPath": path}
    volume = {"name": "files", "persistentVolumeClaim": {"claimName": claim}}
    return {"spec": {"containers": [{"name": container, "volumeMounts": [mount]}], "volumes": [volume]}}


DRIVER_PART, EXECUTOR_PART = mounting("spark-kubernetes-driver"), mounting("spark-kubernetes-executor")
#: Changes that make an object one that a query follows.
BY_QUERY: dict[str, Any] = {
    "source__tunnel__type": "Stream",
    "engine": {"stream": "Spark"},
    "sink": {"files": {"url": "file:///lake/flights", "format": "Parquet"}},
    "spark": {
        "checkpoint": {"claimName": "flights-checkpoint"},
        "driver": {"podTemplate": DRIVER_PART},
        "executor": {"podTemplate": EXECUTOR_PART},
    },
}
#: Changes, beside BY_QUERY, with which the query brings existing rows as well.
ALL_BY_QUERY: dict[str, Any] = {
    "source__tunnel__type": "BaseAndStream",
    "engine": {"baseData": "Spark", "stream": "Spark"},
}
PLACE = "persistentVolumeClaim/lake:/flights"
FOLLOWED = Tunnel(description(channel("c1", client=CLIENT, consumed=NOW - 3000), kind=TunnelType.Stream))
FREE = Tunnel(description(channel("c1", client="", consumed=NOW - 3000), kind=TunnelType.Stream))
WELL = QueryProgress(batch_id=7, rows_per_second=120, lag_seconds=0, channels=1)
DRIVER = SparkPod(f"{NAME}-driver", "Running", terminated=False)

Children = dict[tuple[str, str], Any]


def query_status(**changes: Any) -> dict[str, Any]:
    """The status of an object whose tunnel exists."""
    tunnel = {"id": TUNNEL_ID, "createIntentTime": timestamp(NOW - 900), "createdByOperator": True}
    return {"tunnel": tunnel, "filesPlace": PLACE} | changes


def query_resource(status: dict[str, Any] | None = None, **changes: Any) -> Resource:
    """The object."""
    return resource(query_status() if status is None else status, **BY_QUERY | changes)


def query_record(progress: QueryProgress = WELL, *, label: str = TUNNEL_ID, age: float = 100) -> Children:
    """The record of the query's progress; `age` is the seconds since the driver's last write."""
    metadata = {"name": NAME, "labels": {PROGRESS_LABEL: label}}
    return {("ConfigMap", NAME): {"metadata": metadata, "data": query_items(progress, label, NOW - age)}}


def query_app(state: str, *, of: Resource | None = None, error: str = "", age: float = 300, **spec: Any) -> Children:
    """The application as it was applied for an object, in a state of the Spark operator."""
    found = stamped(query_objects((of or query_resource()).object, TUNNEL_ID, SETTINGS)[-1])
    metadata = found["metadata"] | {"creationTimestamp": timestamp(NOW - age), "uid": "app-1"}
    status = {
        "applicationState": {"state": state, "errorMessage": error},
        "driverInfo": {"podName": DRIVER.name},
        "lastSubmissionAttemptTime": timestamp(NOW - age),
    }
    return {("SparkApplication", NAME): found | {"metadata": metadata, "spec": found["spec"] | spec, "status": status}}


def query_world(children: Children | None = None, of: Resource | None = None, **changes: Any) -> World:
    """An object whose query follows the tunnel; `changes` replace what was observed."""
    stored = query_app("RUNNING") | query_record() if children is None else children
    found = world(of or query_resource(), children=stored, pods=(), query_pods=(DRIVER,), tunnel=FOLLOWED)
    return replace(found, **changes)
