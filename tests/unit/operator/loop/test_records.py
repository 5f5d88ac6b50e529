"""What a plan records goes with the status where it comes first, and is written by itself where it comes later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from ots_tunnel.client.table_calls import StreamDescription, TableDescription
from ots_tunnel.tables import TableSchema
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import FINALIZER
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.report.status_change import merge_patch, merged
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import COPY, KEYS, NOW, SCHEMA, SETTINGS, UID, world

NAME = "flights-copy"


class Statuses(KubeMemory):
    """Keeps each change of a status."""

    changes: list[Mapping[str, Any]]

    async def patch(self, kind: Kind, namespace: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        if subresource == "status":
            self.changes.append(change["status"])
        return await super().patch(kind, namespace, name, change, subresource)


class OneLook:
    """Sees a new object with this destination once; then the API server refuses everything."""

    def __init__(self, destination: Table | Missing) -> None:
        self._destination = destination
        self._looks = 0

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        self._looks += 1
        if self._looks > 1:
            raise KubeError(500, "InternalError", "no further look")
        new = replace(world(tunnel=Missing()), resource=resource, children={}, pods=())
        return replace(new, destination=self._destination)


class Rows:
    """An instance with both tables."""

    async def describe_table(self, table: str) -> TableDescription:
        found: TableSchema = COPY if table == COPY.name else SCHEMA
        stream = StreamDescription(enabled=True, expiration_hours=24)
        deviation = found.deviation_seconds
        return TableDescription(found.name, found.keys, found.ttl_seconds, found.max_versions, deviation, stream)

    async def is_empty(self, table: str, keys: object) -> bool:
        return True


async def step(destination: Table | Missing) -> list[Mapping[str, Any]]:
    """The changes of the status of a new object in one step."""
    body = tunnel_object()
    body["metadata"] |= {"uid": UID, "finalizers": [FINALIZER]}
    kube, cache = Statuses({("TablestoreTunnel", NAME): body}), LoopCache()
    kube.changes = []
    instance = SimpleNamespace(
        endpoint="http://e", instance="demo", credentials=KEYS, rows=Rows(), tables=None, before_write=None
    )
    cache.source.instance = cache.sink.instance = cast(Instance, instance)
    reconciler = Reconciler(
        cast(Cluster, kube),
        cast(Observer, OneLook(destination)),
        SETTINGS,
        OperatorMetrics(),
        lambda resource: None,
        clock=lambda: NOW,
    )
    await reconciler.step("default", NAME, cache)
    return kube.changes


async def test_a_record_that_comes_first_goes_with_the_conditions() -> None:
    first, *others = await step(Missing())

    assert {item["type"]: item["reason"] for item in first["conditions"]}["Ready"] == "CreatingDestination"
    assert first["destination"]["createIntentTime"]
    assert not any((change.get("destination") or {}).get("createIntentTime") for change in others)


async def test_a_record_behind_another_action_is_written_after_it() -> None:
    first, second, *_ = await step(Table(COPY))

    assert {item["type"]: item["reason"] for item in first["conditions"]}["Ready"] == "CreatingDestination"
    assert "destination" not in first
    assert second["destination"]["ensuredTime"]


def test_a_merged_change_is_what_the_api_server_makes_of_it() -> None:
    before = {"tunnel": {"id": "1", "stage": "Init"}, "lag": {"seconds": 3}, "phase": "Preparing", "workers": [1, 2]}
    change = {"tunnel": {"stage": None, "type": "Stream"}, "lag": None, "workers": [3], "reset": {"token": {"a": None}}}

    after = merged(before, change)

    assert after == {
        "tunnel": {"id": "1", "type": "Stream"},
        "phase": "Preparing",
        "workers": [3],
        "reset": {"token": {}},
    }
    assert merged(before, merge_patch(before, after)) == after
    assert before["tunnel"] == {"id": "1", "stage": "Init"}
