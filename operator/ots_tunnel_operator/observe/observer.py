"""Read everything that one pass needs; change nothing.

What cannot be read becomes a `Failure` with its problem: never a default, and an exception only from the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.cluster import Reader
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, SPARK_APPLICATION, Kind, Manifest
from ots_tunnel_operator.kube.looked_at import look_at
from ots_tunnel_operator.kube.watched import SPARK_LABEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.manifests.children import is_owned
from ots_tunnel_operator.observe.belonging import with_own_reports, with_own_terminations
from ots_tunnel_operator.observe.peek import PeekObserver
from ots_tunnel_operator.observe.pod_monitor import observe_pod_monitor
from ots_tunnel_operator.observe.pods import spark_pod, worker_pod
from ots_tunnel_operator.observe.pull_causes import with_known_causes
from ots_tunnel_operator.observe.scrape import scrape
from ots_tunnel_operator.observe.settling import observe_settling
from ots_tunnel_operator.observe.shards.observer import ShardsObserver
from ots_tunnel_operator.observe.sides import SidesObserver
from ots_tunnel_operator.observe.stillness import observe_movement, observe_silence, observe_spark
from ots_tunnel_operator.observe.tunnel import TunnelObserver
from ots_tunnel_operator.observe.worker_page import ReadPage
from ots_tunnel_operator.observe.worker_secrets import observe_worker_secrets
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.pod import Pod, SparkPod
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, RolloutTurn, World


class Observer:
    """Reads the world of an object; holds no state of a single object.

    Args:
        kube: what watches keep of the cluster.
        read: reads the pages of the workers.
        settings: of the process.
        turn: what the other objects do about new workers.
    """

    def __init__(
        self,
        kube: Reader,
        read: ReadPage,
        settings: Settings,
        turn: Callable[[Resource], RolloutTurn] = lambda _: RolloutTurn(),
    ) -> None:
        self._kube = kube
        self._read = read
        self._settings = settings
        self._turn = turn
        self._sides = SidesObserver(kube, settings)
        self._tunnel = TunnelObserver(settings)
        self._shards = ShardsObserver(settings)
        self._peek = PeekObserver(settings)

    async def observe(self, resource: Resource, cache: LoopCache, *, elder: Competitor | None, now: float) -> World:
        """Read the world of one object.

        Args:
            resource: the object.
            cache: of its loop.
            elder: the elder object that this one waits for; with one, neither instance is called. One that it would
                wait for later stops nothing.
            now: seconds since 1970.

        Raises:
            KubeError: the API server does not answer.
        """
        world = World(resource, now, children=await self._children(resource, cache), scaling=cache.scaling)
        is_later = elder is not None and elder.later
        world = replace(world, later_elder=elder) if is_later else replace(world, elder=elder)
        world = replace(world, rollout_turn=self._turn(resource))
        selector = names.selector_text(resource.name)
        items = await self._kube.list(POD, resource.namespace, selector)
        found = with_known_causes([worker_pod(item) for item in items], cache)
        pods = await scrape(self._read, resource, found, timeout=self._settings.scrape_seconds)
        pods = with_own_reports(pods, resource)
        world = replace(world, pods=pods, consumed_until=_consumed_until(resource, pods, cache))
        world = observe_silence(world, cache)
        world = replace(world, pod_monitor=await observe_pod_monitor(self._kube, resource, cache))
        if resource.spec.uses_spark:
            world = replace(world, spark_pods=await self._spark_pods(resource, names.snapshot_name(resource.name)))
        if resource.spec.uses_query:
            world = replace(world, query_pods=await self._spark_pods(resource, names.query_name(resource.name)))
        world = observe_spark(world, cache)
        if world.elder is not None:
            return with_own_terminations(world)
        world = replace(world, worker_secrets=await observe_worker_secrets(self._kube, resource))
        cache.patience = Patience.after(cache.patience)
        async with cache.turn.lent():
            world = await self._sides.observe(world, cache, cache.patience)
            if resource.spec.source.stream is not None:
                world = await self._shards.observe(world, cache, cache.patience)
            else:
                world = await self._tunnel.observe(world, cache, cache.patience)
                world = await self._peek.observe(world, cache, cache.patience)
        return observe_settling(observe_movement(with_own_terminations(world), cache), cache)

    async def _spark_pods(self, resource: Resource, application: str) -> tuple[SparkPod, ...]:
        """The pods of a SparkApplication, whoever made it."""
        items = await self._kube.list(POD, resource.namespace, f"{SPARK_LABEL}={application}")
        return tuple(spark_pod(item) for item in items)

    async def _children(self, resource: Resource, cache: LoopCache) -> dict[tuple[str, str], Mapping[str, Any]]:
        wanted: list[tuple[Kind, str, str]] = [(DEPLOYMENT, names.deployment_name(resource.name), names.ROLE_WORKER)]
        if resource.spec.uses_spark:
            wanted.append((CONFIG_MAP, names.snapshot_name(resource.name), names.ROLE_SNAPSHOT))
            wanted.append((SPARK_APPLICATION, names.snapshot_name(resource.name), names.ROLE_SNAPSHOT))
        if resource.spec.uses_query:
            wanted.append((CONFIG_MAP, names.query_name(resource.name), names.ROLE_STREAM))
            wanted.append((SPARK_APPLICATION, names.query_name(resource.name), names.ROLE_STREAM))
        found = await self._owned(resource, wanted, cache)
        if (
            resource.spec.sink.files is not None
            and (DEPLOYMENT.kind, names.deployment_name(resource.name)) not in found
        ):
            # it has the place of the files as well (`assess.worker_pods.place`)
            place = (CONFIG_MAP, names.config_name(resource.name), names.ROLE_WORKER)
            found |= await self._owned(resource, [place], cache)
        return found

    async def _owned(
        self, resource: Resource, wanted: list[tuple[Kind, str, str]], cache: LoopCache
    ) -> dict[tuple[str, str], Mapping[str, Any]]:
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for kind, name, role in wanted:
            item = await self._child(kind, resource.namespace, name, cache)
            # what belongs to a deleted object of this name, or to another client, says nothing about this one
            if item is not None and is_owned(item, resource.uid, names.identity_labels(resource.name, role)):
                found[kind.kind, name] = item
        return found

    async def _child(self, kind: Kind, namespace: str, name: str, cache: LoopCache) -> Manifest | None:
        """One child. The Deployment changes seldom, and reading it takes a quarter of a pass."""
        if kind is not DEPLOYMENT:
            return await self._kube.get(kind, namespace, name)
        cache.deployment = await look_at(self._kube, kind, namespace, name, cache.deployment)
        return cache.deployment


def _consumed_until(resource: Resource, pods: tuple[Pod, ...], cache: LoopCache) -> dict[str, float]:
    """Until when workers have reported channels as consumed, kept while a worker restarts.

    Another tunnel on the same stream has channels with the same ids: what was read of these tells nothing about those.
    """
    recorded = str(resource.recorded_tunnel.get("id") or "")
    if cache.consumed_of != recorded:
        cache.consumed_until, cache.consumed_of = {}, recorded
    until = cache.consumed_until
    for pod in pods:
        for channel in pod.report.channels if pod.report is not None else ():
            if channel.consumed_up_to is not None:
                until[channel.channel_id] = max(until.get(channel.channel_id, 0.0), channel.consumed_up_to)
    return dict(until)
