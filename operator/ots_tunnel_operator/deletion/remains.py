"""A deleted object, as far as its deletion has to understand it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from ots_tunnel.config.messages.describing import describe
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.deletion.obstacles import Obstacle
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor

#: Grace period of a worker's pod where the spec names none, seconds.
GRACE_SECONDS = 60
#: Seconds within which a kubelet that works ends a pod after its grace period.
KILL_SECONDS = 60.0


_MIRROR: Final = {"url": "file:///mirror", "format": "Delta", "mode": "Mirror"}


@dataclass(frozen=True, slots=True)
class Remains:
    """A deleted object, as far as it can be told without understanding its spec; times are seconds since 1970."""

    body: Mapping[str, Any]
    elder: Competitor | None = None
    """The elder object on the same tunnel; None without one."""

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
    def finalizers(self) -> list[str]:
        """Who holds the object."""
        return list(self.body["metadata"].get("finalizers") or ())

    @property
    def version(self) -> str | None:
        """resourceVersion of the object."""
        found = self.body["metadata"].get("resourceVersion")
        return None if found is None else str(found)

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
    def uses_spark(self) -> bool:
        """Whether Spark copies rows, so that there may be a record of a snapshot."""
        engine = _mapping(_mapping(self.body.get("spec")).get("engine"))
        return bool(engine.get("baseData") == "Spark") and not self.uses_query

    @property
    def uses_query(self) -> bool:
        """Whether a query of Spark follows the changes."""
        return bool(_mapping(_mapping(self.body.get("spec")).get("engine")).get("stream") == "Spark")

    @property
    def drain_seconds(self) -> float:
        """Longest end of a worker: its pod is killed after its grace period, and its node may take a moment more."""
        workers = _mapping(_mapping(self.body.get("spec")).get("workers"))
        grace = workers.get("terminationGracePeriodSeconds")
        return (grace if isinstance(grace, int) else GRACE_SECONDS) + KILL_SECONDS

    @property
    def deletes_tunnel(self) -> bool:
        """Whether a tunnel has to be deleted: the policy says so, and this object created one for itself alone."""
        return self.would_delete and self.elder is None

    @property
    def would_delete(self) -> bool:
        """Whether a tunnel has to be deleted unless an elder object consumes it."""
        recorded = _mapping(_mapping(self.body.get("status")).get("tunnel"))
        return self.deletes and bool(recorded.get("createdByOperator", bool(recorded.get("createIntentTime"))))

    @property
    def decided(self) -> tuple[object, ...]:
        """What decides what is deleted: a release relies on it."""
        return self.uid, self.deletes, self.deletes_tunnel

    @property
    def tunnel(self) -> str:
        """The tunnel, or the table of leases in its place, in words; it may be unknown."""
        source = _mapping(_mapping(self.body.get("spec")).get("source"))
        if "stream" in source:
            return f"table of leases {_mapping(source['stream']).get('leaseTable')!r} of table {source.get('table')!r}"
        return f"tunnel {_mapping(source.get('tunnel')).get('name')!r} of table {source.get('table')!r}"

    @property
    def removal(self) -> str:
        """The command that deletes the tunnel where it was recorded; the keys are left to its caller."""
        source = _mapping(_mapping(self.body.get("spec")).get("source"))
        recorded = _mapping(_mapping(self.body.get("status")).get("tunnel"))
        tunnel = _mapping(source.get("tunnel")).get("name")
        place = {"--endpoint": recorded.get("endpoint") or source.get("endpoint"), "--instance": source.get("instance")}
        options = (part for option, value in place.items() for part in (option, str(value)))
        return shlex.join(["ots-tunnel", "tunnel", "delete", str(source.get("table")), str(tunnel), *options])

    def resource(self) -> Resource:
        """The object with the part of its spec that says where its tunnel is; the rest is left out.

        Raises:
            Obstacle: this release cannot read it.
        """
        body = {**self.body, "spec": _where_it_is(_mapping(self.body.get("spec")))}
        try:
            return Resource(TablestoreTunnel.from_body(body), self.body.get("status") or {})
        except ValidationError as error:
            # nothing is deleted by guessing
            raise Obstacle(f"the object does not fit this release: {describe(error)}: correct the spec") from error


def _where_it_is(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The source, the tunnel's name and type, the engine, and whether it is a mirror; nothing else may hold a deletion.

    What no release can change any more, such as an immutable field that only an earlier one could read, is not needed.
    """
    found = {key: spec[key] for key in ("source", "engine") if key in spec}
    source = _mapping(spec.get("source"))
    if isinstance(source.get("tunnel"), Mapping):
        tunnel = {key: value for key, value in source["tunnel"].items() if key in ("name", "type")}
        found["source"] = {**source, "tunnel": tunnel}
    # the model wants a sink; which one does not matter to a tunnel, but for a mirror, whose tunnel has changes alone
    files = _mapping(_mapping(spec.get("sink")).get("files"))
    return found | {"sink": {"files": _MIRROR} if files.get("mode") == "Mirror" else {"stdout": {}}}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
