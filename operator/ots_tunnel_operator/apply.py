"""Carry out planned actions in order. Apart from deletion and status writes, only this module changes anything, and
`create` and `removal`, which make its calls to the service.

Each action is idempotent. A failed action ends the pass, because the next ones rely on it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar, assert_never

from ots_tunnel_operator import KIND, names
from ots_tunnel_operator.create import ActionFailed, Creator
from ots_tunnel_operator.diagnosis import crd_outdated, kube_problem, pod_monitor_problem, pod_template_refused
from ots_tunnel_operator.kube.client import REFUSALS, KindMissing, KubeError, NameConflict
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.drift import is_current, owned_hash, stamp, stamped
from ots_tunnel_operator.kube.kept import version_of
from ots_tunnel_operator.kube.kinds import (
    DEPLOYMENT,
    NO_VERSION,
    POD,
    SPARK_APPLICATION,
    Kind,
    Manifest,
    kind_of,
)
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache, MonitorRefusal
from ots_tunnel_operator.manifests.children import is_child
from ots_tunnel_operator.observe.trial import try_template
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    ApplyToExisting,
    Aside,
    CheckName,
    CreateTunnel,
    DeleteObject,
    DeleteTunnel,
    EnsureDestination,
    MarkPod,
    RecordStatus,
    ScaleDown,
    SetReplicas,
    TryObject,
    TryTemplate,
)
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.removal import Removal
from ots_tunnel_operator.reset.record import State
from ots_tunnel_operator.status_write import StatusOutdated, dropped_fields, write_status
from ots_tunnel_operator.world.resource import Resource

logger = logging.getLogger(__name__)

#: State of a reset that is recorded -> what is logged about it.
RESET_ACTIONS: Mapping[str, LogAction] = {
    State.RUNNING: LogAction.RESET_STARTED,
    State.DONE: LogAction.RESET_DONE,
    State.REFUSED: LogAction.RESET_REFUSED,
}

R = TypeVar("R")


class PredecessorThere(Exception):
    """A child of a deleted object of the same name still exists; garbage collection will remove it."""


class Applier:
    """Carries out the actions of one object.

    Args:
        kube: the API server.
        resource: the object.
        cache: of its loop.
        reader: what watches keep of the children; None reads from the API server every time.
    """

    def __init__(self, kube: Cluster, resource: Resource, cache: LoopCache, reader: Reader | None = None) -> None:
        self._kube = kube
        self._reader = reader or kube
        self._resource = resource
        self._cache = cache
        self._service = Creator(kube, resource, cache)
        self._removal = Removal(resource, cache)

    async def apply(self, action: Action) -> bool:
        """Carry out one action and return whether it changed anything.

        Raises:
            ActionFailed: a call failed.
            PredecessorThere: a child of a deleted object of the same name is in the way.
            StatusOutdated: the object has changed since it was read.
        """
        try:
            return await self._apply(action)
        except StatusOutdated:
            raise
        except (KubeError, NameConflict) as error:
            lasts = isinstance(error, NameConflict) or error.status in REFUSALS
            raise ActionFailed(kube_problem(error), lasts=lasts) from error

    async def _apply(self, action: Action) -> bool:
        match action:
            case RecordStatus(change):
                await self._record(change)
            case EnsureDestination():
                await self._service.ensure_destination(action)
            case CreateTunnel():
                await self._service.create_tunnel(action)
            case DeleteTunnel(tunnel_id):
                return await self._removal.delete_tunnel(tunnel_id)
            case Aside(inner):
                return await self._try_aside(inner)
            case _:
                return await self._apply_to_children(action)
        return True

    async def _try_aside(self, action: ApplyObject | DeleteObject) -> bool:
        """Carry out what the flow does not need; why it was refused is kept for this report and the next looks."""
        try:
            is_changed = await self._apply_to_children(action)
        except (KubeError, NameConflict) as error:
            if isinstance(error, KubeError) and error.status == 0:
                # nobody has answered: that is about more than this object
                raise
            wanted, name = self._resource.wants_pod_monitor, names.workers_name(self._resource.name)
            problem = pod_monitor_problem(error, name, wanted=wanted)
            self._cache.monitor_refusal = MonitorRefusal(wanted, self._cache.time, problem)
            return False
        self._cache.monitor_refusal = None
        return is_changed

    async def _apply_to_children(
        self,
        action: ApplyObject
        | ApplyToExisting
        | TryTemplate
        | TryObject
        | CheckName
        | ScaleDown
        | SetReplicas
        | MarkPod
        | DeleteObject,
    ) -> bool:
        """Carry out an action about objects of the API server."""
        match action:
            case ApplyObject(manifest):
                return await self._apply_object(manifest)
            case ApplyToExisting(manifest):
                return await self._apply_to_existing(manifest)
            case TryTemplate() | TryObject() | CheckName():
                await self._ask(action)
                return False
            case ScaleDown():
                return await self._scale(0)
            case SetReplicas(replicas):
                return await self._scale(replicas)
            case MarkPod(name, cost):
                return await self._mark(name, cost)
            case DeleteObject(kind, name):
                return await self._delete_object(kind, name)
            case _:
                assert_never(action)

    async def _ask(self, action: TryTemplate | TryObject | CheckName) -> None:
        """Ask about a manifest that is applied later; nothing is stored."""
        match action:
            case TryTemplate(manifest):
                await self._try_template(manifest)
            case TryObject(manifest):
                await self._try_object(manifest)
            case CheckName(manifest):
                if await self._own(manifest) is None:
                    # watches see the operator's labels only, which an object of another client need not have
                    await self._refuse_unseen(kind_of(manifest), manifest["metadata"]["name"])

    async def _record(self, change: Mapping[str, Any]) -> None:
        self.recorded(change, await write_status(self._kube, self._resource, change, self._cache))

    def recorded(self, change: Mapping[str, Any], stored: Mapping[str, Any] | None) -> None:
        """Take note of a change that is in the status.

        Args:
            stored: the status as stored; None where that is not known.

        Raises:
            ActionFailed: the API server has dropped a part of it.
        """
        self._log_reset(change.get("reset") or {})
        if lost := dropped_fields(change, stored):
            raise ActionFailed(crd_outdated(lost))
        # with the tunnel, the source's stream may have been enabled: read both again
        self._cache.source.table = None
        self._cache.tunnel = None

    async def _apply_object(self, manifest: Manifest) -> bool:
        kind, metadata, rendered = kind_of(manifest), manifest["metadata"], manifest
        key = (kind.kind, metadata["name"])
        if await self._is_unchanged(kind, key, rendered):
            return False
        manifest = stamped(rendered)
        is_hidden = key in self._cache.hidden
        # what a watch knows decides that nothing is to do; before a change the object itself is read
        for reader in (self._kube,) if is_hidden else (self._reader, self._kube):
            existing = await reader.get(kind, metadata["namespace"], metadata["name"])
            if existing is not None:
                self._refuse_foreign(existing, kind)
                if self._is_as_rendered(existing, manifest):
                    self._cache.current[key] = (rendered, version_of(existing))
                    return False
            else:
                # what is sent then only creates, and is refused where the object exists
                break
        try:
            await self._send(manifest, existing)
        except KubeError as error:
            if error.status == 409 and existing is None:
                if not is_hidden:
                    self._cache.hidden.add(key)
                    return await self._apply_object(rendered)
                await self._refuse_unseen(kind, metadata["name"])
            if error.status == 404 and kind is SPARK_APPLICATION:
                raise ActionFailed(_spark_missing(metadata["namespace"])) from error
            raise
        return True

    async def _apply_to_existing(self, rendered: Manifest) -> bool:
        """Apply a manifest to the object of its name as the API server has it; nothing where there is none."""
        kind, metadata, manifest = kind_of(rendered), rendered["metadata"], stamped(rendered)
        existing = await self._kube.get(kind, metadata["namespace"], metadata["name"])
        if existing is None or existing["metadata"].get("deletionTimestamp"):
            return False
        self._refuse_foreign(existing, kind)
        if self._is_as_rendered(existing, manifest):
            return False
        await self._send(manifest, existing)
        return True

    async def _send(self, manifest: Manifest, existing: Manifest | None) -> None:
        """Apply a stamped manifest to the object that was checked, or where there was none."""
        kind, name = kind_of(manifest).kind, manifest["metadata"]["name"]
        stored = await self._kube.apply(_for_this_one(manifest, existing))
        self._cache.applied[kind, name] = (stamp(manifest), owned_hash(stored))
        self._log(LogAction.APPLIED_OBJECT, kind=kind, child=name)

    def _is_as_rendered(self, existing: Manifest, manifest: Manifest) -> bool:
        """Whether applying a stamped manifest to an object would change nothing."""
        applied, accepted = self._cache.applied.get((manifest["kind"], manifest["metadata"]["name"]), ("", ""))
        return is_current(existing, manifest, accepted if applied == stamp(manifest) else "")

    async def _try_object(self, rendered: Manifest) -> None:
        """Ask about a manifest, unless applying it would change nothing."""
        existing, manifest = await self._own(rendered), stamped(rendered)
        if existing is None or not self._is_as_rendered(existing, manifest):
            await self._kube.try_apply(manifest)

    async def _is_unchanged(self, kind: Kind, key: tuple[str, str], rendered: Manifest) -> bool:
        """Whether a child was found as rendered before, and neither it nor what is rendered has changed since.

        What is rendered is kept from pass to pass (`Resource.rendered`), so that it is the same object.
        """
        known, version = self._cache.current.get(key, (None, ""))
        is_known = known is rendered and bool(version)
        return (
            is_known and await self._reader.stored_version(kind, rendered["metadata"]["namespace"], key[1]) == version
        )

    async def _try_template(self, manifest: Manifest) -> None:
        """Ask about a pod template; where it is refused, the number of workers follows alone."""
        existing = await self._own(manifest)
        if refusal := await try_template(self._kube, manifest, existing, self._cache):
            replicas = manifest["spec"]["replicas"]
            if existing is not None and existing["spec"].get("replicas") != replicas:
                # what runs keeps its template, and its number follows: spec.replicas 0 stops every worker
                await self._scale(replicas)
            has_own_part = bool(self._resource.spec.worker_settings.pod_template)
            raise ActionFailed(pod_template_refused(refusal, has_own_part=has_own_part), lasts=True)

    async def _own(self, manifest: Manifest) -> Manifest | None:
        """The object of a manifest's name as watches know it, refused where it belongs to something else."""
        kind, name = kind_of(manifest), manifest["metadata"]["name"]
        existing = await self._reader.get(kind, self._resource.namespace, name)
        if existing is not None:
            self._refuse_foreign(existing, kind)
        return existing

    async def _refuse_unseen(self, kind: Kind, name: str) -> None:
        """Refuse an object that has the name and that no look has shown; one of ours is applied next time."""
        found = await self._kube.get(kind, self._resource.namespace, name)
        if found is not None:
            self._refuse_foreign(found, kind)

    def _refuse_foreign(self, existing: Manifest, kind: Kind) -> None:
        """Refuse to touch an object that does not belong to this one."""
        name, namespace = existing["metadata"]["name"], self._resource.namespace
        owners = existing["metadata"].get("ownerReferences") or ()
        if any((owner.get("kind"), owner.get("name")) == (KIND, self._resource.name) for owner in owners) and not any(
            owner.get("uid") == self._resource.uid for owner in owners
        ):
            raise PredecessorThere(f"{kind.kind} {name!r} of a deleted object of this name is being removed")
        if is_child(existing, kind, self._resource.name, self._resource.uid):
            return
        raise NameConflict(
            f"{kind.kind} {name!r} in namespace {namespace!r} exists and belongs to something else: delete or rename "
            f"it, or create an object with another name instead"
        )

    async def _scale(self, replicas: int) -> bool:
        name = names.deployment_name(self._resource.name)
        existing = await self._kube.get(DEPLOYMENT, self._resource.namespace, name)
        if existing is None or existing["spec"].get("replicas") == replicas:
            return False
        self._refuse_foreign(existing, DEPLOYMENT)
        change = {"metadata": {"uid": _uid(existing)}, "spec": {"replicas": replicas}}
        await self._kube.patch(DEPLOYMENT, self._resource.namespace, name, change)
        action = LogAction.SCALED if replicas else LogAction.SCALED_DOWN
        self._log(action, kind=DEPLOYMENT.kind, child=name)
        return True

    async def _mark(self, name: str, cost: str | None) -> bool:
        change = {"metadata": {"annotations": {names.ANNOTATION_DELETION_COST: cost}}}
        try:
            await self._kube.patch(POD, self._resource.namespace, name, change)
        except KubeError as error:
            # it has gone by itself; the next pass chooses again
            if error.status != 404 or isinstance(error, KindMissing):
                raise
            return False
        self._log(LogAction.MARKED_POD, kind=POD.kind, child=name)
        return True

    async def _delete_object(self, kind: Kind, name: str) -> bool:
        existing = await self._kube.get(kind, self._resource.namespace, name)
        if existing is None:
            return False
        self._refuse_foreign(existing, kind)
        if existing["metadata"].get("deletionTimestamp"):
            # it has been deleted, and goes when its finalizers are done
            return False
        # the uid: an object that takes the name after the check is spared
        await self._kube.delete(kind, self._resource.namespace, name, uid=_uid(existing))
        self._log(LogAction.DELETED_OBJECT, kind=kind.kind, child=name)
        return True

    def _log_reset(self, change: Mapping[str, Any]) -> None:
        """Log what is recorded of a reset."""
        if action := RESET_ACTIONS.get(str(change.get("state"))):
            self._log(action, token=str(change.get("token") or ""), text=str(change.get("message") or ""))

    def _log(self, action: LogAction, **values: str) -> None:
        place = {"namespace": self._resource.namespace, "object": self._resource.name}
        logger.info(action.description, extra={"action": action, **place, **values})


def _for_this_one(manifest: Manifest, existing: Manifest | None) -> Manifest:
    """The manifest with the uid of the object that was checked, or for none: what takes the name since is spared."""
    precondition = {"resourceVersion": NO_VERSION}
    if existing is not None:
        precondition = {"uid": _uid(existing)} if _uid(existing) else {}
    return manifest | {"metadata": manifest["metadata"] | precondition}


def _uid(existing: Manifest) -> str:
    return str(existing["metadata"].get("uid") or "")


def _spark_missing(namespace: str) -> Problem:
    return Problem(
        Reason.SPARK_OPERATOR_MISSING,
        "spec.engine: the cluster has no kind SparkApplication: install the kubeflow spark-operator "
        f"(helm chart spark-operator) with spark.jobNamespaces={{{namespace}}}, or use engine Workers in a new object",
    )
