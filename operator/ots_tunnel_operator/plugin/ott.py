"""An object as the API server has it, with what views read of it. Pure.

Nothing is validated: an object that another release wrote is shown as far as it can be. What is absent is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.reasons import PAGE
from ots_tunnel_operator.times import parse_time


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; `since` is the time of its last change in Unix seconds."""

    type: str
    status: str
    reason: str
    message: str
    since: float | None

    @property
    def is_true(self) -> bool:
        """Whether its status is True."""
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class Ott:
    """A TablestoreTunnel.

    Args:
        body: the API server's JSON.
    """

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
        return str(self.body["metadata"]["uid"])

    @property
    def created(self) -> float | None:
        """Time of creation, Unix seconds."""
        return parse_time(self.body["metadata"].get("creationTimestamp"))

    @property
    def deleted(self) -> float | None:
        """Time of the request to delete it, Unix seconds; None without one."""
        return parse_time(self.body["metadata"].get("deletionTimestamp"))

    @property
    def finalizers(self) -> tuple[str, ...]:
        """What holds it while it is being deleted."""
        return tuple(self.body["metadata"].get("finalizers") or ())

    @property
    def lease(self) -> tuple[str, str] | None:
        """Namespace and name of the Lease of the operator that serves it; None without a claim."""
        claim = (self.body["metadata"].get("annotations") or {}).get(names.ANNOTATION_OPERATOR)
        namespace, _, name = str(claim or "").partition("/")
        return (namespace, name) if name else None

    @property
    def is_current(self) -> bool:
        """Whether the status describes the present spec."""
        return bool(self.status.get("observedGeneration") == self.body["metadata"].get("generation"))

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec."""
        return self.body.get("spec") or {}

    @property
    def status(self) -> Mapping[str, Any]:
        """The status; empty before the operator's first write."""
        return self.body.get("status") or {}

    @property
    def wanted_workers(self) -> int:
        """spec.replicas, for which the API server fills in its default of 1, or the number that Auto has decided.

        As the operator counts it (`assess.scaling.record`).
        """
        asked = int(self.spec.get("replicas", 1))
        decided, then = self.number("autoscaling", "desiredReplicas"), self.number("autoscaling", "specReplicas")
        if not asked or decided is None or then is None or (not decided and self.scaling_mode != "Auto"):
            return asked
        return decided if self.scaling_mode == "Auto" or then == asked else asked

    @property
    def expected_workers(self) -> int:
        """Workers that should run now: none while it is suspended, where a query of Spark runs in
        their place, and once everything is delivered."""
        is_off = self.is_suspended or self.by_query or self.condition("Completed").is_true
        return 0 if is_off else self.wanted_workers

    @property
    def scaling_mode(self) -> str:
        """spec.autoscaling.mode."""
        return str((self.spec.get("autoscaling") or {}).get("mode") or "Disabled")

    @property
    def is_asleep(self) -> bool:
        """Whether no worker is wanted because nothing is to be read; the operator looks for what ends that."""
        is_off = self.is_suspended or self.deleted is not None or self.condition("Completed").is_true
        return not is_off and self.scaling_mode == "Auto" and bool(self.text("autoscaling", "sleep", "since"))

    @property
    def peek_interval(self) -> int | None:
        """Seconds between two looks of the operator while no worker runs; None where the spec has none."""
        seconds = ((self.spec.get("autoscaling") or {}).get("scaleToZero") or {}).get("peekIntervalSeconds")
        return None if seconds is None else int(seconds)

    @property
    def lag_limit(self) -> int | None:
        """Lag in seconds from which the object is Degraded, with what files hold; None where the spec has none."""
        limit = (self.spec.get("monitoring") or {}).get("lagDegradedSeconds")
        files = (self.spec.get("sink") or {}).get("files") or {}
        held = 0 if self.by_query else int(files.get("maxFileSeconds", 0))
        return None if limit is None else int(limit) + held

    @property
    def uses_spark(self) -> bool:
        """Whether the spec lets Spark copy existing rows from a snapshot."""
        return bool((self.spec.get("engine") or {}).get("baseData") == "Spark") and not self.by_query

    @property
    def by_query(self) -> bool:
        """Whether a query of Spark follows the changes, in the place of workers."""
        return bool((self.spec.get("engine") or {}).get("stream") == "Spark")

    @property
    def is_mirror(self) -> bool:
        """Whether the sink holds the present rows, of which its query copies those that exist without the tunnel."""
        return bool(((self.spec.get("sink") or {}).get("files") or {}).get("mode") == "Mirror")

    @property
    def leases(self) -> str:
        """The table of leases by which its workers share the shards of a stream; empty where it reads a tunnel."""
        stream = (self.spec.get("source") or {}).get("stream") or {}
        return str(stream.get("leaseTable") or "")

    @property
    def part(self) -> str:
        """What its workers share: channels of a tunnel, or shards of a stream; one of them in words."""
        return "shard" if self.leases else "channel"

    @property
    def is_copied_by_spark(self) -> bool:
        """Whether a copy by Spark is recorded that is not over: no worker runs before it is."""
        return bool(self.status.get("snapshot")) and self.text("snapshot", "state") != "Completed"

    @property
    def is_suspended(self) -> bool:
        """spec.suspend."""
        return bool(self.spec.get("suspend"))

    def number(self, *path: str) -> int | None:
        """A figure of the status; None while it is unknown."""
        found = self._at(path)
        return None if found is None else int(found)

    def text(self, *path: str) -> str:
        """A text of the status; empty where it is absent."""
        return str(self._at(path) or "")

    def time(self, *path: str) -> float | None:
        """A time of the status in Unix seconds; None where it is absent."""
        return parse_time(self.text(*path))

    def flag(self, *path: str) -> bool | None:
        """A yes or no of the status; None while it is unknown."""
        found = self._at(path)
        return None if found is None else bool(found)

    def entries(self, *path: str) -> tuple[Mapping[str, Any], ...]:
        """A list of the status; empty where it is absent."""
        return tuple(self._at(path) or ())

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions in the order of the status."""
        return tuple(_condition(item) for item in self.entries("conditions"))

    def condition(self, kind: str) -> Condition:
        """The condition of a type; one of status Unknown where the status has none."""
        found = (_condition(item) for item in self.entries("conditions") if item["type"] == kind)
        return next(found, Condition(kind, "Unknown", "", "", None))

    @property
    def problem(self) -> Condition | None:
        """The condition that tells what is wrong: Stalled before Degraded before an unknown Ready; None where nothing
        is."""
        for kind in ("Stalled", "Degraded"):
            if (found := self.condition(kind)).is_true:
                return found
        ready = self.condition("Ready")
        return ready if ready.status == "Unknown" and ready.reason else None

    def _at(self, path: tuple[str, ...]) -> Any:
        place: Any = self.status
        for key in path:
            place = (place or {}).get(key)
        return place


def _condition(item: Mapping[str, Any]) -> Condition:
    return Condition(
        str(item["type"]),
        str(item["status"]),
        str(item.get("reason") or ""),
        # where to read on is said once, by the views themselves
        str(item.get("message") or "").partition(f"; see {PAGE}#")[0],
        parse_time(item.get("lastTransitionTime")),
    )
