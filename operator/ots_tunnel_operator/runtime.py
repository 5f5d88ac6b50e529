"""What the handlers share: connections, one cache and one loop per object, who is on which tunnel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from ots_tunnel_operator.deletion import Deleter
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.reconcile import Reconciler
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world import Competitor, Resource

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """What wakes a loop when it changes; everything else of the object is our own doing."""

    generation: int
    deleting: bool
    annotations: tuple[tuple[str, str], ...]


class Runtime:
    """The operator's state in one process.

    Args:
        settings: of the process.
        metrics: what it counts.
    """

    def __init__(self, settings: Settings, metrics: OperatorMetrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self._kube: Kube | None = None
        self._session: aiohttp.ClientSession | None = None
        self._caches: dict[str, LoopCache] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._seen: dict[str, Seen] = {}

    async def open(self, kube: Kube | None = None) -> None:
        """Connect; a connection given is not closed by us.

        Raises:
            ConfigError: there is no cluster to connect to.
        """
        self._kube = kube or await Kube.connect()
        self._session = aiohttp.ClientSession()

    async def close(self) -> None:
        """Close everything."""
        for cache in self._caches.values():
            await cache.close()
        self._caches.clear()
        if self._session is not None:
            await self._session.close()
        if self._kube is not None:
            await self._kube.close()

    def reconciler(self, elder: Callable[[Resource], Competitor | None]) -> Reconciler:
        """A loop's passes."""
        kube, session = self._connected()
        return Reconciler(kube, Observer(kube, session, self.settings), self.settings, self.metrics, elder)

    def deleter(self) -> Deleter:
        """The end of objects."""
        return Deleter(self._connected()[0], self.settings, self.metrics)

    def cache(self, uid: str, namespace: str, name: str) -> LoopCache:
        """What the loop of an object remembers."""
        self._names[uid] = (namespace, name)
        return self._caches.setdefault(uid, LoopCache())

    async def forget(self, uid: str) -> None:
        """The object is gone."""
        cache = self._caches.pop(uid, None)
        self._seen.pop(uid, None)
        if cache is not None:
            await cache.close()
        namespace, name = self._names.pop(uid, ("", ""))
        self.metrics.forget(namespace, name)

    def wake(self, namespace: str, name: str) -> None:
        """Something of the object changed: look at it now."""
        for uid, place in self._names.items():
            if place == (namespace, name) and uid in self._caches:
                self._caches[uid].wake.set()

    def wake_all(self) -> None:
        """An object went: another one may take its tunnel over."""
        for cache in self._caches.values():
            cache.wake.set()

    def has_changed(self, body: Mapping[str, Any]) -> bool:
        """Whether an event of an object is more than the echo of our own status write."""
        metadata = body["metadata"]
        annotations = metadata.get("annotations") or {}
        seen = Seen(
            int(metadata.get("generation") or 0),
            bool(metadata.get("deletionTimestamp")),
            tuple(sorted((key, value) for key, value in annotations.items() if "last-" not in key)),
        )
        before, self._seen[metadata["uid"]] = self._seen.get(metadata["uid"]), seen
        return before != seen

    def _connected(self) -> tuple[Kube, aiohttp.ClientSession]:
        if self._kube is None or self._session is None:
            raise RuntimeError("the operator is not connected yet")
        return self._kube, self._session


def competitor(body: Mapping[str, Any]) -> Competitor:
    """An object as another one sees it."""
    metadata = body["metadata"]
    return Competitor(
        metadata["name"], metadata["namespace"], parse_time(metadata.get("creationTimestamp")) or 0.0, metadata["uid"]
    )


def eldest(resource: Resource, others: Iterable[Competitor]) -> Competitor | None:
    """The oldest other object on the tunnel, if older than this one: by creation, then uid (docs/architecture.md 3)."""
    own = (resource.created, resource.uid)
    elder = [other for other in others if other.uid != resource.uid and (other.created, other.uid) < own]
    return min(elder, key=lambda other: (other.created, other.uid), default=None)
