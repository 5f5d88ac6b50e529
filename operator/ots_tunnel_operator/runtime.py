"""State that the handlers share: connections, watches, one cache per object, and who is woken by what."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

from ots_tunnel_operator import names
from ots_tunnel_operator.concerns import Concerns, eldest
from ots_tunnel_operator.deletion.deleter import Deleter
from ots_tunnel_operator.instance import InstancePool
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import SECRET, TUNNEL, Kind, Manifest
from ots_tunnel_operator.kube.reflector import Event
from ots_tunnel_operator.kube.watched import Watched
from ots_tunnel_operator.kube.write_through import WriteThrough
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop.reconcile import Reconciler
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.observe.rollouts import Rollouts
from ots_tunnel_operator.observe.worker_page import ReadPage, WorkerPages
from ots_tunnel_operator.routes import Place
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, RolloutTurn

logger = logging.getLogger(__name__)

#: Seconds by which each object lengthens the time over which the first passes after a start are spread.
SPREAD = 0.03
#: Seconds for which a start waits for the list of objects.
LIST_SECONDS = 5.0
#: Seconds for which the end of the operator waits for passes under way, which kopf has cancelled by then.
CLOSE_SECONDS = 3.0
#: Seconds after the start in which a loop is taken for one of an object that was there before.
START_SECONDS = 10.0


class Runtime:
    """The operator's state in one process.

    Args:
        settings: of the process.
        metrics: of the process.
        namespaces: the ones served; empty means all.
        entropy: randomness of every pause.
        may_write: whether the lease is held, asked before every write; None without election.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: OperatorMetrics,
        namespaces: tuple[str, ...] = (),
        entropy: random.Random | None = None,
        *,
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        self.settings = settings
        self._may_write = may_write
        self.metrics = metrics
        self._namespaces = namespaces
        self._entropy = entropy or random.Random()
        self._cluster: Cluster | None = None
        self._reader: Reader | None = None
        self._watched: Watched | None = None
        self._pages: ReadPage = WorkerPages().read
        self._reconciler: Reconciler | None = None
        self._opened = 0.0
        self._concerns = Concerns()
        self._rollouts = Rollouts(settings.worker_image)
        self._instances = InstancePool(self._before_write, metrics.service_refused)
        self._caches: dict[str, LoopCache] = {}
        self._uids: dict[Place, str] = {}
        self._forgetting: set[asyncio.Task[None]] = set()

    async def open(self, cluster: Cluster | None = None, *, watch: bool = True, pages: ReadPage | None = None) -> None:
        """Connect to the API server, or use a given connection; `close` closes it.

        Args:
            cluster: the API server; None connects to the one of the pod or the kubeconfig.
            watch: read from memory what watches keep there; False reads from the API server every time.
            pages: reads the pages of the workers; None connects to them.

        Raises:
            ConfigError: there is no cluster to connect to.
        """
        cluster = cluster or await Kube.connect(self._may_write, self.metrics.api_refused)
        self._pages = pages or self._pages
        self._cluster = self._reader = cluster
        if watch:
            self._watched = self._reader = Watched(
                cluster,
                namespaces=self._namespaces,
                listener=self._changed,
                lost=self._lost,
                entropy=self._entropy,
            )
            self._cluster = WriteThrough(cluster, self._watched)
            # so many objects are there: their first passes are spread; what goes wrong here shows in those passes
            with contextlib.suppress(KubeError, TimeoutError):
                async with asyncio.timeout(LIST_SECONDS):
                    await self._watched.follow_objects()
        self._opened = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Close every connection once the passes under way have ended; none begins from now on.

        What a pass still uses after CLOSE_SECONDS stays open: the process ends soon.
        """
        is_idle = await self._end_passes()
        if self._watched is not None:
            await self._watched.close()
        cluster = self._cluster
        self._cluster = self._reader = self._reconciler = None
        if not is_idle:
            logger.warning(LogAction.CLOSE_INCOMPLETE.description, extra={"action": LogAction.CLOSE_INCOMPLETE})
            return
        if cluster is not None:
            await cluster.close()

    async def _end_passes(self) -> bool:
        """Take every object's lock for good, and close the clients below it; False where a pass goes on."""
        held = {asyncio.create_task(cache.lock.acquire()): cache for cache in self._caches.values()}
        ending = {*held, *self._forgetting}
        self._caches.clear()
        late = (await asyncio.wait(ending, timeout=CLOSE_SECONDS))[1] if ending else set()
        for task in late:
            task.cancel()
        for cache in (cache for task, cache in held.items() if task not in late):
            await cache.close()
        return not late

    def reconciler(self, elder: Callable[[Resource], Competitor | None] | None = None) -> Reconciler:
        """The passes over all objects; `elder` replaces the look for an elder object on the same tunnel."""
        if self._reconciler is None or elder is not None:
            cluster, reader = self._connected()
            observer = Observer(reader, self._pages, self.settings, self.turn)
            look = elder or self.elder
            self._reconciler = Reconciler(
                cluster,
                observer,
                self.settings,
                self.metrics,
                look,
                reader=reader,
                entropy=self._entropy,
            )
        return self._reconciler

    @property
    def reader(self) -> Reader:
        """What passes read: the copies that watches keep, or the API server itself."""
        return self._connected()[1]

    def deleter(self) -> Deleter:
        """The deletion of objects."""
        (cluster, reader), claims = self._connected(), self.reconciler().claims
        return Deleter(
            cluster,
            self.settings,
            self.metrics,
            claims=claims,
            entropy=self._entropy,
            reader=reader,
            elder=self._concerns.elder,
        )

    def elder(self, resource: Resource) -> Competitor | None:
        """The elder object that this one waits for, or would wait for if it copied anything now; None without one."""
        return elder_of(resource, self._concerns)

    def turn(self, resource: Resource) -> RolloutTurn:
        """What the other objects do about new workers."""
        return self._rollouts.turn(resource)

    def first_pause(self, namespace: str, name: str) -> float:
        """Seconds until the first pass of a loop: after a start, the passes of many objects are spread.

        An object that was edited while no operator looked, as after the death of the leader, does not wait for that.
        """
        longest = min(self.settings.spread_seconds, SPREAD * len(self._concerns))
        is_starting = asyncio.get_running_loop().time() - self._opened < START_SECONDS
        is_spread = is_starting and not self._is_edited(namespace, name)
        return self._entropy.random() * longest if is_spread else 0.0

    def _is_edited(self, namespace: str, name: str) -> bool:
        """Whether a status of the object exists and is about an earlier spec."""
        body = None if self._watched is None else self._watched.object(namespace, name)
        seen = ((body or {}).get("status") or {}).get("observedGeneration")
        return body is not None and bool(seen) and seen != body["metadata"].get("generation")

    def cache(self, uid: str, namespace: str, name: str) -> LoopCache:
        """The cache of an object's loop, which the events of this name wake from now on."""
        self._uids[namespace, name] = uid
        return self.deleted_cache(uid)

    def deleted_cache(self, uid: str) -> LoopCache:
        """The cache of an object's deletion, which no event wakes: another object may have its name meanwhile."""
        return self._caches.setdefault(uid, LoopCache.sharing(self._instances, uid))

    def ended(self, uid: str, namespace: str, name: str) -> None:
        """The loop of an object was cancelled: no pass over it comes any more."""
        if self._uids.get((namespace, name), uid) == uid:
            self.metrics.ended(namespace, name)

    async def forget(self, uid: str, namespace: str, name: str) -> None:
        """Drop everything about an object that no longer exists; again, what came after the first time."""
        cache = self._caches.pop(uid, None)
        if self._reconciler is not None:
            self._reconciler.claims.forget(uid)
        self._forget_samples(uid, namespace, name)
        if cache is not None:
            # a pass that is under way may still call by these clients
            cache.forgotten = True
            async with cache.lock:
                await cache.close()
            # it may have shown something since, and been cancelled before its end
            self._forget_samples(uid, namespace, name)

    def _forget_samples(self, uid: str, namespace: str, name: str) -> None:
        """Drop the name and the samples of an object, unless they are those of a successor."""
        if self._uids.get((namespace, name), uid) == uid:
            self._uids.pop((namespace, name), None)
            self.metrics.forget(namespace, name)

    def served(self) -> list[tuple[Manifest, LoopCache | None]]:
        """Every object that the watch has, with what its loop keeps; None where none has begun. Reads memory alone."""
        found = () if self._watched is None else self._watched.objects()
        return [(body, self._caches.get(body["metadata"]["uid"])) for body in found]

    async def vouch(self) -> None:
        """Vouch for the copy of the objects.

        Raises:
            KubeError: nothing recent is known.
        """
        if self._watched is None:
            raise KubeError(0, "NotWatched", "this operator does not watch its objects yet")
        await self._watched.follow_objects()

    def wake(self, places: Iterable[Place]) -> None:
        """Start the next pass over each of these objects."""
        for place in places:
            cache = self._caches.get(self._uids.get(place, ""))
            if cache is not None:
                cache.wake.set()

    def _before_write(self) -> None:
        """Ask for the right to change something at the service, as `Kube` does for the API server."""
        if self._may_write is not None and not self._may_write():
            raise KubeError(0, "NotLeading", "the lease is not held, nothing was sent to the service")

    def _changed(self, kind: Kind, event: Event, manifest: Manifest) -> None:
        """A watch reports a change; one of an object's status wakes nobody."""
        metadata = manifest["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        if kind is TUNNEL:
            deleted = event == "DELETED"
            (self._rollouts.deleted if deleted else self._rollouts.changed)(manifest)
            self.wake(self._concerns.deleted(manifest) if deleted else self._concerns.changed(manifest))
            if deleted:
                # the loop notices that its object is gone
                self.wake([(namespace, name)])
                task = asyncio.create_task(self.forget(metadata["uid"], namespace, name))
                self._forgetting.add(task)
                task.add_done_callback(self._forgetting.discard)
        elif kind is SECRET:
            self.wake(self._concerns.users(namespace, name))
        else:
            owner = (metadata.get("labels") or {}).get(names.LABEL_NAME, "")
            self.wake([(namespace, owner)])

    def _lost(self, kind: Kind, namespace: str) -> None:
        """The API server refuses a watch: every object that relied on it says so in its next pass."""
        logger.warning(
            "the API server refuses a watch",
            extra={"action": LogAction.WATCH_REFUSED, "watch": f"{kind.plural} in {namespace or 'every namespace'}"},
        )
        self.wake(self._concerns.places(namespace))

    def _connected(self) -> tuple[Cluster, Reader]:
        if self._cluster is None or self._reader is None:
            raise RuntimeError("the operator is not connected yet")
        return self._cluster, self._reader


def elder_of(resource: Resource, concerns: Concerns) -> Competitor | None:
    """The elder object on the tunnel of this one, or else the first one on its copy's way back to its source."""
    elder, place = eldest(resource, concerns.rivals(resource.spec.identity)), (resource.namespace, resource.name)
    way = concerns.way_back(place, idle=True)
    if elder is not None or not way:
        return elder
    # a suspended one leads on until its workers have ended, and waits for nobody
    is_later = resource.spec.suspend or not concerns.way_back(place)
    names_of_way = tuple(f"{other.namespace}/{other.name}" for other in way)
    return replace(way[0], way_back=names_of_way, later=is_later)
