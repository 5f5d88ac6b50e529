"""State that the handlers share: connections, one cache per object, and the order of objects on one tunnel."""

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
    """The part of an object whose change wakes its loop; the operator itself writes the rest."""

    generation: int
    deleting: bool
    annotations: tuple[tuple[str, str], ...]


class Runtime:
    """The operator's state in one process.

    Args:
        settings: of the process.
        metrics: of the process.
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
        """Connect to the API server, or use a given connection; `close` closes both.

        Raises:
            ConfigError: there is no cluster to connect to.
        """
        self._kube = kube or await Kube.connect()
        self._session = aiohttp.ClientSession()

    async def close(self) -> None:
        """Close every connection."""
        for cache in self._caches.values():
            await cache.close()
        self._caches.clear()
        if self._session is not None:
            await self._session.close()
        if self._kube is not None:
            await self._kube.close()

    def reconciler(self, elder: Callable[[Resource], Competitor | None]) -> Reconciler:
        """The passes of one loop."""
        kube, session = self._connected()
        return Reconciler(kube, Observer(kube, session, self.settings), self.settings, self.metrics, elder)

    def deleter(self) -> Deleter:
        """The deletion of objects."""
        return Deleter(self._connected()[0], self.settings, self.metrics)

    def cache(self, uid: str, namespace: str, name: str) -> LoopCache:
        """The cache of an object's loop."""
        self._names[uid] = (namespace, name)
        return self._caches.setdefault(uid, LoopCache())

    async def forget(self, uid: str) -> None:
        """Drop everything about an object that no longer exists."""
        cache = self._caches.pop(uid, None)
        self._seen.pop(uid, None)
        if cache is not None:
            await cache.close()
        namespace, name = self._names.pop(uid, ("", ""))
        self.metrics.forget(namespace, name)

    def wake(self, namespace: str, name: str) -> None:
        """Start the next pass over an object that changed."""
        for uid, place in self._names.items():
            if place == (namespace, name) and uid in self._caches:
                self._caches[uid].wake.set()

    def wake_all(self) -> None:
        """Start the next pass over every object: one of them may take over the tunnel of a deleted object."""
        for cache in self._caches.values():
            cache.wake.set()

    def has_changed(self, body: Mapping[str, Any]) -> bool:
        """Whether an event is more than the echo of the operator's own status write."""
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
    """An object as its competitors see it."""
    metadata = body["metadata"]
    return Competitor(
        metadata["name"], metadata["namespace"], parse_time(metadata.get("creationTimestamp")) or 0.0, metadata["uid"]
    )


def eldest(resource: Resource, others: Iterable[Competitor]) -> Competitor | None:
    """The eldest other object on the tunnel if it is elder than this one, by creation, then uid.

    Source: docs/architecture.md 3.7.
    """
    own = (resource.created, resource.uid)
    elder = [other for other in others if other.uid != resource.uid and (other.created, other.uid) < own]
    return min(elder, key=lambda other: (other.created, other.uid), default=None)
