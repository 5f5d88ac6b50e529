"""Deletion of an object, up to its release (docs/architecture.md 3.6).

Retain keeps the tunnel. Delete removes the tunnel if this operator created it: first the consumers, so that no client
is left on it, then the tunnel, then the record of a snapshot. Children with an owner are removed by garbage collection.

A deletion always ends. Whatever is in the way (credentials, endpoint, Secret, rights, a spec that this release cannot
read, an unexpected error) is told by an event at once. After Settings.delete_seconds (600 s), or at once with the
annotation of names.ANNOTATION_FORCE_DELETE, the object is released with another event, and the tunnel stays.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ots_tunnel.config import describe
from ots_tunnel.errors import ObjectNotExist, ParameterInvalid
from ots_tunnel.model import TunnelInfo
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.diagnosis import Place, secret_name, service_problem, shortened
from ots_tunnel_operator.instance import CALL_ERRORS
from ots_tunnel_operator.kube.claims import Claim, Claims
from ots_tunnel_operator.kube.client import KubeError
from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, POD, SECRET, SPARK_APPLICATION, TUNNEL
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.loop_cache import LoopCache, Side
from ots_tunnel_operator.manifests.children import is_owned
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.observe.access_key import read_credentials
from ots_tunnel_operator.observe.pods import worker_pod
from ots_tunnel_operator.report.conditions import Notice
from ots_tunnel_operator.report.reporter import Reporter
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world import Failure, Resource

logger = logging.getLogger(__name__)


class NotYet(Exception):
    """Deletion has to wait; the text names the cause."""


class Elsewhere(NotYet):
    """Another operator serves the object and will release it."""


class JustClaimed(NotYet):
    """The object was claimed in this moment: the deletion has not been tried yet."""


class Obstacle(NotYet):
    """Deletion waits for something that may never end by itself; the text says what to do."""


class Doubtful(Elsewhere, Obstacle):
    """Nobody can tell whether the operator that the object names is still there."""


@dataclass(frozen=True, slots=True)
class Remains:
    """A deleted object, as far as it can be told without understanding its spec; times are seconds since 1970."""

    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return str(self.body["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        """Uid of the object."""
        return str(self.body["metadata"].get("uid") or "")

    @property
    def deleted(self) -> float | None:
        """Time of the deletion request."""
        return parse_time(self.body["metadata"].get("deletionTimestamp"))

    @property
    def is_forced(self) -> bool:
        """Whether a person asks to release the object at once, whatever stays behind."""
        annotations = self.body["metadata"].get("annotations") or {}
        return bool(annotations.get(names.ANNOTATION_FORCE_DELETE) == "true")

    @property
    def deletes(self) -> bool:
        """Whether the policy is to delete what the object created."""
        return bool(_mapping(self.body.get("spec")).get("deletionPolicy") == "Delete")

    @property
    def deletes_tunnel(self) -> bool:
        """Whether a tunnel has to be deleted: the policy says so, and this object created one."""
        recorded = _mapping(_mapping(self.body.get("status")).get("tunnel"))
        return self.deletes and bool(recorded.get("createdByOperator", bool(recorded.get("createIntentTime"))))

    @property
    def tunnel(self) -> str:
        """The tunnel in words; it may be unknown."""
        source = _mapping(_mapping(self.body.get("spec")).get("source"))
        return f"tunnel {_mapping(source.get('tunnel')).get('name')!r} of table {source.get('table')!r}"

    def resource(self) -> Resource:
        """The object with its spec.

        Raises:
            Obstacle: this release cannot read it.
        """
        try:
            return Resource(TablestoreTunnel.from_body(self.body), self.body.get("status") or {})
        except ValidationError as error:
            # nothing is deleted by guessing
            raise Obstacle(f"the object does not fit this release: {describe(error)}: correct the spec") from error


class Deleter:
    """Deletes what belongs to an object; every step may be repeated after a restart."""

    def __init__(
        self,
        kube: Cluster,
        settings: Settings,
        metrics: OperatorMetrics,
        clock: Callable[[], float] = time.time,
        *,
        claims: Claims | None = None,
    ) -> None:
        self._kube = kube
        self._claims = claims or Claims(kube, settings.lease)
        self._settings = settings
        self._clock = clock
        self._reporter = Reporter(kube, settings, metrics)

    async def finish(self, namespace: str, name: str, cache: LoopCache) -> None:
        """Return when the object may be released; only cancellation is raised."""
        began, remains = self._clock(), None
        waiting, logged, was_claimed = NotYet(), "", False
        while True:
            async with cache.lock:
                try:
                    remains = await self._remains(namespace, name, cache)
                    if remains is not None:
                        await self._claim(remains)
                        await self._delete_all(remains, cache)
                    return
                except NotYet as reason:
                    waiting = reason
                except KubeError as error:
                    waiting = Obstacle(f"the API server refuses a call ({shortened(str(error))}): check the rights")
                except Exception as error:
                    # whatever goes wrong must not hold the object for longer than the time limit
                    waiting = Obstacle(f"{type(error).__name__}: {shortened(str(error))}")
                    logger.exception(
                        "an unexpected error of a deletion",
                        extra=_where(LogAction.DELETION_DELAYED, namespace, name, str(waiting)),
                    )
                if isinstance(waiting, Obstacle) and str(waiting) != logged:
                    logged = str(waiting)
                    where = _where(LogAction.DELETION_DELAYED, namespace, name, logged)
                    logger.warning("a deleted object has to wait", extra=where)
                # after a long absence of every operator the time is over before the first try
                is_untried = isinstance(waiting, JustClaimed) and not was_claimed
                was_claimed = was_claimed or is_untried
                if not is_untried and self._is_late(remains, began, elsewhere=isinstance(waiting, Elsewhere)):
                    await self._leave_behind(remains, namespace, name, str(waiting), cache)
                    return
                await self._tell(remains, waiting, cache)
            await asyncio.sleep(self._settings.wait_seconds)

    async def _remains(self, namespace: str, name: str, cache: LoopCache) -> Remains | None:
        """The deleted object; None where it is gone, perhaps because its finalizer was removed by hand."""
        body = await self._kube.get(TUNNEL, namespace, name)
        if body is not None and not cache.is_of(body):
            if not cache.forgotten:
                raise NotYet("another object has its name")
            body = None
        return None if body is None else Remains(body)

    async def _claim(self, remains: Remains) -> None:
        claim = await self._claims.claim(remains.body)
        if claim is Claim.NEW:
            raise JustClaimed("the object has just been claimed")
        if claim is Claim.ELSEWHERE:
            if doubt := self._claims.doubt(remains.body):
                raise Doubtful(doubt)
            raise Elsewhere("another operator serves the object")

    def _is_late(self, remains: Remains | None, began: float, *, elsewhere: bool) -> bool:
        if remains is not None and remains.is_forced and not elsewhere:
            return True
        asked = began if remains is None or remains.deleted is None else remains.deleted
        return self._clock() - asked > self._longest(elsewhere=elsewhere)

    def _longest(self, *, elsewhere: bool) -> float:
        """Seconds after which the object is released; another operator would have done so after the simple time."""
        return self._settings.delete_seconds * (2 if elsewhere else 1)

    async def _tell(self, remains: Remains | None, reason: NotYet, cache: LoopCache) -> None:
        """Post an event about an obstacle: a person has to remove it, or the object waits until its time is over."""
        if remains is None or not isinstance(reason, Obstacle):
            return
        longest = self._longest(elsewhere=isinstance(reason, Elsewhere))
        message = f"the deletion waits, at most {longest:.0f} s: {reason}"
        await self._reporter.post(remains, Notice("Warning", "DeletionDelayed", message), cache, self._clock())

    async def _delete_all(self, remains: Remains, cache: LoopCache) -> None:
        if remains.deletes_tunnel:
            await self._delete(remains.resource(), cache)
        if remains.deletes:
            await self._delete_record(remains)

    async def _delete_record(self, remains: Remains) -> None:
        """Delete the record of a snapshot: created under Retain, it has no owner and would stay."""
        name = names.snapshot_name(remains.name)
        found = await self._kube.get(CONFIG_MAP, remains.namespace, name)
        mine = {names.LABEL_NAME: remains.name, names.LABEL_ROLE: names.ROLE_SNAPSHOT}
        if found is not None and is_owned(found, remains.uid, mine):
            await self._kube.delete(CONFIG_MAP, remains.namespace, name, uid=str(found["metadata"].get("uid") or ""))

    async def _delete(self, resource: Resource, cache: LoopCache) -> None:
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
                listed = await instance.tunnels.list_tunnels(source.table)
                if any(_is_ours(tunnel, resource) for tunnel in listed):
                    await instance.tunnels.delete_tunnel(source.table, source.tunnel.name)
        except (ParameterInvalid, ObjectNotExist):
            return
        except CALL_ERRORS as error:
            cache.source.forget()
            raise Obstacle(service_problem(error, place).message) from error

    async def _stop_consumers(self, resource: Resource) -> None:
        name, namespace = names.deployment_name(resource.name), resource.namespace
        deployment = await self._kube.get(DEPLOYMENT, namespace, name)
        if deployment is not None and is_owned(deployment, resource.uid, {}) and deployment["spec"].get("replicas"):
            await self._kube.patch(DEPLOYMENT, namespace, name, {**_the_one(deployment), "spec": {"replicas": 0}})
        # pods may have outlived a Deployment that another client deleted
        pods = await self._kube.list(POD, namespace, names.selector_text(resource.name))
        alive = next((pod for pod in map(worker_pod, pods) if pod.is_alive), None)
        if alive is not None:
            raise NotYet(f"worker {alive.name} is draining")
        application = await self._kube.get(SPARK_APPLICATION, namespace, names.snapshot_name(resource.name))
        if application is not None and is_owned(application, resource.uid, {}):
            uid = str(application["metadata"].get("uid") or "")
            await self._kube.delete(SPARK_APPLICATION, namespace, names.snapshot_name(resource.name), uid=uid)
            raise NotYet("the snapshot's SparkApplication is being removed")

    async def _read_keys(self, resource: Resource, side: Side, place: Place) -> None:
        if side.credentials is not None:
            return
        name = secret_name(resource.spec.source)
        found = read_credentials(await self._kube.get(SECRET, resource.namespace, name), name, place)
        if isinstance(found, Failure):
            raise Obstacle(found.problem.message)
        side.credentials = found

    async def _leave_behind(
        self, remains: Remains | None, namespace: str, name: str, waiting: str, cache: LoopCache
    ) -> None:
        if remains is not None and not remains.deletes_tunnel:
            # whoever deletes it by hand loses the checkpoints that were to be kept
            where = _where(LogAction.DELETION_DELAYED, namespace, name, waiting)
            logger.warning("an object is released before its time", extra=where)
            message = f"the object is released without waiting any longer ({waiting}); {remains.tunnel} stays"
            await self._reporter.post(remains, Notice("Warning", "DeletionDelayed", message), cache, self._clock())
            return
        logger.warning("a tunnel is left behind", extra=_where(LogAction.TUNNEL_LEFT_BEHIND, namespace, name, waiting))
        if remains is not None:
            message = (
                f"{remains.tunnel} is left behind, because it could not be deleted in time ({waiting}): "
                f"delete it by hand"
            )
            await self._reporter.post(remains, Notice("Warning", "TunnelLeftBehind", message), cache, self._clock())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _the_one(existing: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a patch that spares an object that has taken the name since."""
    uid = existing["metadata"].get("uid")
    return {"metadata": {"uid": uid}} if uid else {}


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
