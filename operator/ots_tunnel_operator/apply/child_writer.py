"""Writes the children of one object: applies, scales, marks and deletes them, and asks about them beforehand.

What watches know decides that nothing is to do. Before a change the object itself is read, so that one that belongs to
something else is refused (`ownership`), and every write names the uid of what was checked, or that nothing was there.
"""

from __future__ import annotations

import logging
from typing import assert_never

from ots_tunnel_operator import names
from ots_tunnel_operator.apply.create import ActionFailed
from ots_tunnel_operator.apply.ownership import refuse_foreign
from ots_tunnel_operator.diagnosis import pod_template_refused
from ots_tunnel_operator.kube.cluster import Cluster, Reader
from ots_tunnel_operator.kube.drift import is_current, owned_hash, stamp, stamped
from ots_tunnel_operator.kube.errors import KindMissing, KubeError
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
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.trial import try_template
from ots_tunnel_operator.plan.actions import (
    ApplyObject,
    ApplyToExisting,
    CheckName,
    DeleteObject,
    MarkPod,
    ScaleDown,
    SetReplicas,
    TryObject,
    TryTemplate,
)
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.resource import Resource

logger = logging.getLogger(__name__)


class ChildWriter:
    """Carries out the actions about children of one object.

    Args:
        kube: the API server.
        resource: the object.
        cache: of its loop.
        reader: what watches keep of the children, or the API server.
    """

    def __init__(self, kube: Cluster, resource: Resource, cache: LoopCache, reader: Reader) -> None:
        self._kube = kube
        self._resource = resource
        self._cache = cache
        self._reader = reader

    async def carry_out(
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
        """Carry out one action and return whether it changed anything.

        Raises:
            ActionFailed: the cluster cannot have such a child. KubeError: the API server refuses or does not answer.
            NameConflict, PredecessorThere: see `ownership`.
        """
        match action:
            case ApplyObject(manifest):
                return await self._apply(manifest)
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
                return await self._delete(kind, name)
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

    async def _apply(self, manifest: Manifest) -> bool:
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
                refuse_foreign(existing, kind, self._resource)
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
                    return await self._apply(rendered)
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
        refuse_foreign(existing, kind, self._resource)
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
            refuse_foreign(existing, kind, self._resource)
        return existing

    async def _refuse_unseen(self, kind: Kind, name: str) -> None:
        """Refuse an object that has the name and that no look has shown; one of ours is applied next time."""
        found = await self._kube.get(kind, self._resource.namespace, name)
        if found is not None:
            refuse_foreign(found, kind, self._resource)

    async def _scale(self, replicas: int) -> bool:
        name = names.deployment_name(self._resource.name)
        existing = await self._kube.get(DEPLOYMENT, self._resource.namespace, name)
        if existing is None or existing["spec"].get("replicas") == replicas:
            return False
        refuse_foreign(existing, DEPLOYMENT, self._resource)
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

    async def _delete(self, kind: Kind, name: str) -> bool:
        existing = await self._kube.get(kind, self._resource.namespace, name)
        if existing is None:
            return False
        refuse_foreign(existing, kind, self._resource)
        if existing["metadata"].get("deletionTimestamp"):
            # it has been deleted, and goes when its finalizers are done
            return False
        # the uid: an object that takes the name after the check is spared
        await self._kube.delete(kind, self._resource.namespace, name, uid=_uid(existing))
        self._log(LogAction.DELETED_OBJECT, kind=kind.kind, child=name)
        return True

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
