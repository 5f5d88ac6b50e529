"""Deletion of an object, up to its release (docs/architecture.md 3.6).

Retain keeps the tunnel. Delete removes the tunnel if this operator created it: first the consumers, so that no client
is left on it, then the tunnel. After Settings.delete_seconds (600 s) the object is released with a Warning event and
the tunnel stays. Children are removed by garbage collection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from pydantic import ValidationError

from ots_tunnel.config import describe
from ots_tunnel.errors import ObjectNotExist, ParameterInvalid
from ots_tunnel.model import TunnelInfo
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.diagnosis import Place, secret_name, service_problem, shortened
from ots_tunnel_operator.instance import CALL_ERRORS
from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.kinds import DEPLOYMENT, POD, SECRET, SPARK_APPLICATION, TUNNEL
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache, Side
from ots_tunnel_operator.manifests.children import is_owned
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.access_key import read_credentials
from ots_tunnel_operator.observe.pods import worker_pod
from ots_tunnel_operator.report.conditions import Notice
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world import Failure, Resource

logger = logging.getLogger(__name__)


class NotYet(Exception):
    """Deletion has to wait; the text names the cause."""


class Deleter:
    """Deletes what belongs to an object; every step may be repeated after a restart."""

    def __init__(
        self, kube: Cluster, settings: Settings, metrics: OperatorMetrics, clock: Callable[[], float] = time.time
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._clock = clock
        self._reporter = Reporter(kube, settings, metrics)

    async def finish(self, namespace: str, name: str, cache: LoopCache) -> None:
        """Return when the object may be released; only cancellation is raised."""
        waiting = ""
        while True:
            async with cache.lock:
                resource = await self._resource(namespace, name)
                if resource is None or not _deletes_tunnel(resource):
                    return
                try:
                    await self._delete(resource, cache)
                    return
                except NotYet as reason:
                    waiting = str(reason)
                except KubeError as error:
                    waiting = shortened(str(error))
                if self._is_late(resource):
                    await self._leave_behind(resource, waiting, cache)
                    return
            await asyncio.sleep(self._settings.wait_seconds)

    async def _resource(self, namespace: str, name: str) -> Resource | None:
        while True:
            try:
                body = await self._kube.get(TUNNEL, namespace, name)
            except KubeError as error:
                logger.warning(
                    "a deleted object cannot be read",
                    extra=_where(LogAction.DELETION_DELAYED, namespace, name, str(error)),
                )
                await asyncio.sleep(self._settings.wait_seconds)
                continue
            if body is None:
                return None
            try:
                return Resource(TablestoreTunnel.from_body(body), body.get("status") or {})
            except ValidationError as error:
                # CRD and release disagree: nothing is deleted by guessing, and the object is not held without end
                logger.error(
                    "a deleted object does not fit the CRD of this release and is released",
                    extra=_where(LogAction.OBJECT_UNREADABLE, namespace, name, describe(error)),
                )
                return None

    def _is_late(self, resource: Resource) -> bool:
        forced = resource.object.metadata.annotations.get(names.ANNOTATION_FORCE_DELETE) == "true"
        return forced or self._clock() - (resource.deleted or self._clock()) > self._settings.delete_seconds

    async def _delete(self, resource: Resource, cache: LoopCache) -> None:
        await self._stop_consumers(resource)
        source = resource.spec.source
        place = Place.of_source(source)
        await self._read_keys(resource, cache.source, place)
        credentials = cache.source.credentials
        if credentials is None:
            raise NotYet(f"{place.path}.credentials.secretRef.name {place.secret!r} has no credentials")
        instance = await cache.source.connect(source.endpoint, source.instance, credentials)
        try:
            async with asyncio.timeout(self._settings.call_seconds):
                listed = await instance.tunnels.list_tunnels(source.table)
                if any(_is_ours(tunnel, resource) for tunnel in listed):
                    await instance.tunnels.delete_tunnel(source.table, source.tunnel.name)
        except (ParameterInvalid, ObjectNotExist):
            return
        except CALL_ERRORS as error:
            cache.source.forget()
            raise NotYet(service_problem(error, place).message) from error

    async def _stop_consumers(self, resource: Resource) -> None:
        name, namespace = names.deployment_name(resource.name), resource.namespace
        deployment = await self._kube.get(DEPLOYMENT, namespace, name)
        if deployment is not None and is_owned(deployment, resource.uid, {}):
            if deployment["spec"].get("replicas"):
                await self._kube.patch(DEPLOYMENT, namespace, name, {"spec": {"replicas": 0}})
            pods = await self._kube.list(POD, namespace, names.selector_text(resource.name))
            alive = next((pod for pod in map(worker_pod, pods) if pod.is_alive), None)
            if alive is not None:
                raise NotYet(f"worker {alive.name} is draining")
        application = await self._kube.get(SPARK_APPLICATION, namespace, names.snapshot_name(resource.name))
        if application is not None and is_owned(application, resource.uid, {}):
            await self._kube.delete(SPARK_APPLICATION, namespace, names.snapshot_name(resource.name))
            raise NotYet("the snapshot's SparkApplication is being removed")

    async def _read_keys(self, resource: Resource, side: Side, place: Place) -> None:
        if side.credentials is not None:
            return
        name = secret_name(resource.spec.source)
        found = read_credentials(await self._kube.get(SECRET, resource.namespace, name), name, place)
        if isinstance(found, Failure):
            raise NotYet(found.problem.message)
        side.credentials = found

    async def _leave_behind(self, resource: Resource, waiting: str, cache: LoopCache) -> None:
        source = resource.spec.source
        message = (
            f"tunnel {source.tunnel.name!r} of table {source.table!r} is left behind, because it could not be deleted "
            f"in time ({waiting}): delete it by hand"
        )
        logger.warning(
            "a tunnel is left behind",
            extra=_where(LogAction.TUNNEL_LEFT_BEHIND, resource.namespace, resource.name, waiting),
        )
        await self._reporter.post(resource, Notice("Warning", "TunnelLeftBehind", message), cache, self._clock())


def _deletes_tunnel(resource: Resource) -> bool:
    recorded = resource.recorded_tunnel
    intended = bool(recorded.get("createIntentTime"))
    return resource.spec.deletion_policy == "Delete" and bool(recorded.get("createdByOperator", intended))


def _is_ours(tunnel: TunnelInfo, resource: Resource) -> bool:
    """Whether a tunnel is the one that this object created.

    With another id it was created by another client since. Without a recorded id the answer to the creating call was
    lost, and the intent in the status proves the creation.
    """
    spec, recorded = resource.spec, resource.recorded_tunnel.get("id")
    if tunnel.tunnel_name != spec.source.tunnel.name:
        return False
    return tunnel.tunnel_id == recorded if recorded else tunnel.tunnel_type.name == spec.wire_type


def _where(action: LogAction, namespace: str, name: str, error: str) -> dict[str, str]:
    return {"action": action, "namespace": namespace, "object": name, "error": shortened(error)}
