"""Objects that are being deleted, in memory, and the tunnels of their instance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.errors import TunnelError
from ots_tunnel.model import Credentials, TunnelInfo
from ots_tunnel_operator import names
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.world import Competitor
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import EMULATOR, tunnel_object
from tests.support.operator.worlds import KEYS, NOW, UID, description, recorded

NAME = "flights-copy"
QUERY = f"{NAME}-stream"
#: The deletion's time is over after one attempt.
AT_ONCE = Settings(wait_seconds=0.0, delete_seconds=-1.0)
PATIENT = Settings(wait_seconds=0.0)
OWNER = [{"kind": "TablestoreTunnel", "name": NAME, "uid": UID}]


@dataclass
class Service:
    """The tunnels of one instance."""

    tunnels: list[TunnelInfo] = field(default_factory=lambda: [description().tunnel])
    error: TunnelError | None = None
    deleted: list[str] = field(default_factory=list)

    async def list_tunnels(self, table: str) -> list[TunnelInfo]:
        if self.error is not None:
            raise self.error
        return self.tunnels

    async def delete_tunnel(
        self, table: str, name: str, tunnel_id: str, *, before_send: Callable[[], None] | None = None
    ) -> None:
        # by its id: a call that is carried out late must spare a successor
        assert tunnel_id in {tunnel.tunnel_id for tunnel in self.tunnels}
        self.deleted.append(name)


def with_spark(kube: KubeMemory) -> KubeMemory:
    """The same with an object whose existing rows Spark copies."""
    kube.objects["TablestoreTunnel", NAME]["spec"]["engine"] = {"baseData": "Spark"}
    return kube


def deleted_object(policy: str = "Delete", *, status: dict[str, Any] | None = None, forced: bool = False) -> KubeMemory:
    """A cluster with one object that is being deleted; `forced` by the annotation for it."""
    body = tunnel_object(deletionPolicy=policy)
    marks = {names.ANNOTATION_FORCE_DELETE: "true"} if forced else {}
    body["metadata"] |= {"uid": UID, "deletionTimestamp": timestamp(NOW), "annotations": marks}
    return KubeMemory({("TablestoreTunnel", NAME): body | {"status": status or recorded()}})


class Clock:
    """A clock that moves by a minute with every look."""

    STEP = 60.0

    def __init__(self) -> None:
        self.now = NOW - self.STEP

    def __call__(self) -> float:
        self.now += self.STEP
        return self.now


async def finish(
    kube: KubeMemory,
    service: Service | TunnelClient,
    settings: Settings = AT_ONCE,
    clock: Callable[[], float] = lambda: NOW,
    keys: Credentials | None = KEYS,
    elder: Competitor | None = None,
) -> None:
    """Delete the object, with a service that has these tunnels, and an elder object on its tunnel."""
    cache = LoopCache()
    cache.source.credentials = keys
    instance = SimpleNamespace(endpoint=EMULATOR, instance="demo", credentials=KEYS, tunnels=service, before_write=None)
    cache.source.instance = cast(Instance, instance)
    deleter = Deleter(cast(Kube, kube), settings, OperatorMetrics(), clock=clock, elder=lambda _: elder)
    await deleter.finish("default", NAME, cache)


def messages(kube: KubeMemory) -> dict[str, str]:
    """The message of each event, by its reason."""
    return {found["reason"]: found["message"] for (kind, _), found in kube.objects.items() if kind == "Event"}


def events(kube: KubeMemory) -> list[str]:
    """The reasons of all events, in their order."""
    return [found["reason"] for (kind, _), found in kube.objects.items() if kind == "Event"]
