"""What the policy of a deleted object does: its workers end, then its tunnel goes, then the record of a snapshot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from ots_tunnel.errors import ObjectNotExist, ParameterInvalid
from ots_tunnel.model import TunnelInfo
from ots_tunnel_operator import names
from ots_tunnel_operator.api.secrets import secret_name
from ots_tunnel_operator.assess.creation import is_recorded_at, is_standing, tunnel_record
from ots_tunnel_operator.deletion.obstacles import Draining, LastDraining, NotYet, Obstacle, WorkerDraining
from ots_tunnel_operator.deletion.remains import Remains
from ots_tunnel_operator.diagnosis import Place, service_problem
from ots_tunnel_operator.instance import CALL_ERRORS, Instance
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, SECRET, SPARK_APPLICATION, Manifest
from ots_tunnel_operator.kube.watched import SPARK_LABEL
from ots_tunnel_operator.loop_cache import LoopCache, Side
from ots_tunnel_operator.manifests.children import is_child, is_owned
from ots_tunnel_operator.observe.access_key import read_credentials
from ots_tunnel_operator.observe.pods import spark_pod, worker_pod
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.absence import Failure
from ots_tunnel_operator.world.resource import Resource

#: Finalizer of Kubernetes on an object whose children are to outlive it.
ORPHANS = "orphan"


class Policy:
    """Deletes what belongs to a deleted object; every step may be repeated.

    Args:
        kube: the API server.
        settings: of the process.
        clock: Unix seconds.
        reader: what watches keep of the cluster; None asks the API server every time.
    """

    def __init__(
        self,
        kube: Cluster,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        reader: Reader | None = None,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._reader = reader
        self._clock = clock

    async def carry_out(self, remains: Remains, cache: LoopCache) -> None:
        """Let the workers end, and delete what the policy says.

        Raises:
            NotYet: something is in the way, or has to end first.
            KubeError: the API server refuses a call.
        """
        if alive := await self._draining(remains):
            raise (WorkerDraining if remains.deletes_tunnel else LastDraining)(f"worker {alive} is draining")
        if remains.deletes_tunnel:
            await self._delete(remains.resource(), cache)
        else:
            await self._drain(remains)
        if remains.deletes:
            await self._delete_record(remains)
        elif remains.uses_spark:
            await self._keep_record(remains)

    async def _draining(self, remains: Remains) -> str:
        """A worker that drains, by what watches keep; empty where the API server has to be asked.

        A thousand objects may be deleted at once, with their namespace, and each of them looks every two seconds.
        """
        if self._reader is None or ORPHANS in remains.finalizers:
            return ""
        try:
            found = await self._reader.get(DEPLOYMENT, remains.namespace, names.deployment_name(remains.name))
            if found is None or found["spec"].get("replicas") or not is_owned(found, remains.uid, {}):
                return ""
            return await self._alive(self._reader, remains.namespace, remains.name)
        except KubeError:
            # the copy is not vouched for
            return ""

    async def _delete_record(self, remains: Remains) -> None:
        """Delete the record of a snapshot: created under Retain, it has no owner and would stay."""
        name = names.snapshot_name(remains.name)
        found = await self._kube.get(CONFIG_MAP, remains.namespace, name)
        mine = names.identity_labels(remains.name, names.ROLE_SNAPSHOT)
        if found is not None and is_owned(found, remains.uid, mine):
            await self._kube.delete(CONFIG_MAP, remains.namespace, name, uid=str(found["metadata"].get("uid") or ""))

    async def _keep_record(self, remains: Remains) -> None:
        """Take the record from garbage collection: it was created under Delete, and no pass has seen the edit since."""
        name = names.snapshot_name(remains.name)
        found = await self._kube.get(CONFIG_MAP, remains.namespace, name)
        if found is None or not is_owned(found, remains.uid, {}):
            return
        metadata = found["metadata"]
        others = [owner for owner in metadata["ownerReferences"] if owner.get("uid") != remains.uid]
        change = {"resourceVersion": metadata.get("resourceVersion"), "ownerReferences": others}
        await self._kube.patch(CONFIG_MAP, remains.namespace, name, {"metadata": change})

    async def _delete(self, resource: Resource, cache: LoopCache) -> None:
        if cache.tunnel_deleted:
            return
        await self._stop_consumers(resource)
        source = resource.spec.source
        place = Place.of_source(source)
        await self._read_keys(resource, cache.source, place)
        credentials = cache.source.credentials
        if credentials is None:
            raise Obstacle(f"{place.path}.credentials.secretRef.name {place.secret!r} has no credentials")
        instance = await cache.source.connect(source.endpoint, source.instance, credentials)
        try:
            async with asyncio.timeout(self._settings.call_seconds):
                found = await _delete_ours(instance, resource)
        except (ParameterInvalid, ObjectNotExist):
            found = None
        except CALL_ERRORS as error:
            cache.source.forget()
            raise Obstacle(service_problem(error, place).message) from error
        if found is None or not _is_ours(found, resource):
            self._check_absence(resource, is_free=found is None)
        cache.tunnel_deleted = True

    def _check_absence(self, resource: Resource, *, is_free: bool) -> None:
        """Raise where our tunnel may exist nevertheless, or, as long as the name is free, may yet be created."""
        source, recorded = resource.spec.source, resource.recorded_tunnel
        if not is_recorded_at(recorded, source.endpoint):
            raise Obstacle(
                f"spec.source.endpoint {source.endpoint!r}: the tunnel is not there, and was recorded at "
                f"{recorded.get('endpoint')!r}: set the endpoint back"
            )
        if is_free and not recorded.get("id") and is_standing(recorded, self._clock()):
            raise NotYet("a call that creates the tunnel may still be under way")

    async def _drain(self, remains: Remains) -> None:
        """Let the workers end before the object does: who waits for the deletion finds every channel handed back.

        A Deployment that is to outlive its object (`kubectl delete --cascade=orphan`) goes on.
        """
        if ORPHANS in remains.finalizers:
            return
        if remains.uses_query and (waiting := await self._end_query(remains.namespace, remains.name, remains.uid)):
            raise Draining(waiting)
        found = await self._kube.get(DEPLOYMENT, remains.namespace, names.deployment_name(remains.name))
        is_orphaned = found is not None and not is_owned(found, remains.uid, {})
        if is_orphaned:
            return
        if found is not None:
            await self._stop(remains.namespace, remains.name, found)
        alive = await self._alive(self._kube, remains.namespace, remains.name)
        if alive:
            raise LastDraining(f"worker {alive} is draining")

    async def _end_query(self, namespace: str, name: str, uid: str) -> str:
        """Delete a query's SparkApplication; what is left of it in words, empty where nothing is."""
        application = names.query_name(name)
        found = await self._kube.get(SPARK_APPLICATION, namespace, application)
        if found is not None and not is_child(found, SPARK_APPLICATION, name, uid):
            # that of another client, and its pods, are left alone
            return ""
        if found is not None:
            if not found["metadata"].get("deletionTimestamp"):
                one = str(found["metadata"].get("uid") or "")
                await self._kube.delete(SPARK_APPLICATION, namespace, application, uid=one)
            return "the query's SparkApplication is being removed"
        pods = await self._kube.list(POD, namespace, f"{SPARK_LABEL}={application}")
        alive = next((pod.name for pod in map(spark_pod, pods) if pod.is_alive and not pod.terminated), "")
        return f"pod {alive} of the query is ending" if alive else ""

    async def _stop_consumers(self, resource: Resource) -> None:
        namespace = resource.namespace
        found = await self._kube.get(DEPLOYMENT, namespace, names.deployment_name(resource.name))
        if found is not None and is_child(found, DEPLOYMENT, resource.name, resource.uid):
            await self._stop(namespace, resource.name, found)
        if alive := await self._alive(self._kube, namespace, resource.name):
            raise WorkerDraining(f"worker {alive} is draining")
        if resource.spec.uses_query and (waiting := await self._end_query(namespace, resource.name, resource.uid)):
            raise NotYet(waiting)
        if not resource.spec.uses_spark:
            # the engine is immutable; without Spark the operator may have no rights on its kinds
            return
        application = await self._kube.get(SPARK_APPLICATION, namespace, names.snapshot_name(resource.name))
        if application is not None and is_child(application, SPARK_APPLICATION, resource.name, resource.uid):
            uid = str(application["metadata"].get("uid") or "")
            await self._kube.delete(SPARK_APPLICATION, namespace, names.snapshot_name(resource.name), uid=uid)
            raise NotYet("the snapshot's SparkApplication is being removed")

    async def _stop(self, namespace: str, name: str, deployment: Manifest) -> None:
        """Ask for no worker any more; a Deployment that is gone meanwhile has none."""
        if not deployment["spec"].get("replicas"):
            return
        change = {**_the_one(deployment), "spec": {"replicas": 0}}
        try:
            await self._kube.patch(DEPLOYMENT, namespace, names.deployment_name(name), change)
        except KubeError as error:
            if error.status != 404 or isinstance(error, KindMissing):
                raise

    async def _alive(self, reader: Reader, namespace: str, name: str) -> str:
        """A worker's pod that has not ended; they may outlive a Deployment that another client deleted."""
        pods = await reader.list(POD, namespace, names.selector_text(name))
        return next((pod.name for pod in map(worker_pod, pods) if pod.is_alive), "")

    async def _read_keys(self, resource: Resource, side: Side, place: Place) -> None:
        if side.credentials is not None:
            return
        name = secret_name(resource.spec.source.credentials)
        found = read_credentials(await self._kube.get(SECRET, resource.namespace, name), name, place)
        if isinstance(found, Failure):
            raise Obstacle(found.problem.message)
        side.credentials = found


def _the_one(existing: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a patch that spares an object that has taken the name since."""
    uid = existing["metadata"].get("uid")
    return {"metadata": {"uid": uid}} if uid else {}


async def _delete_ours(instance: Instance, resource: Resource) -> TunnelInfo | None:
    """Delete the tunnel of the spec's name if it is this object's, and return it, whosever it is."""
    source = resource.spec.source
    listed = await instance.tunnels.list_tunnels(source.table)
    found = next((tunnel for tunnel in listed if tunnel.tunnel_name == source.a_tunnel.name), None)
    if found is not None and _is_ours(found, resource):
        await instance.tunnels.delete_tunnel(
            source.table, source.a_tunnel.name, found.tunnel_id, before_send=instance.before_write
        )
    return found


def _is_ours(tunnel: TunnelInfo, resource: Resource) -> bool:
    """Whether a tunnel is the one that this object created.

    With another id it was created by another client since. Without a recorded id the answer to the creating call was
    lost, and the intent in the status proves the creation.
    """
    spec, recorded = resource.spec, resource.recorded_tunnel.get("id")
    if recorded:
        return bool(tunnel.tunnel_id == recorded)
    found = tunnel_record(tunnel, resource.recorded_tunnel, spec.source.endpoint)
    return bool(found["createdByOperator"]) and found["type"] == resource.wire_type
