"""Which operator serves an object: a claim on the object itself.

Theory of operation
-------------------
Two operators whose scopes overlap (one for the whole cluster and one for a namespace, or two releases) hold different
Leases, so no Lease keeps one of them out. The object does: its annotation names the Lease of the operator that serves
it, and no other one acts on it. A claim is written once, with the resourceVersion that was read, so that one of two
operators wins; afterwards it costs nothing, and a new leader of the same Lease continues without a write.

A claim is taken over once its operator is gone: the claim stands, and its Lease has not changed, for TAKEOVER_SECONDS.
A holder renews every 2 s, and a free or missing Lease does not change. A Lease whose holder has said for so long that
it serves other namespaces counts as gone in the rest: nobody works there by that Lease any more. A claim that comes
back after a takeover shows that its operator is back, although its Lease was looked at shortly before. After a takeover
the new operator waits for GRACE_SECONDS before it acts: by then an operator that came back at that moment has seen the
claim. The time of the takeover is beside the claim, so that the next leader of the Lease waits as well. A leader that
lost its Lease sends no write (`kube.lease.Lease.is_held`). A Lease that must not be read, as by an operator that serves
some namespaces only, counts as held: `doubt` says so in words, for an event, and a person decides by removing the
annotation.

    no claim                        claim it, then act
    our claim                       act
    another claim, Lease alive      leave the object alone
    another claim, Lease gone       claim it, wait, then act; also where its holder serves other namespaces
    our claim, taken over just now  wait, then act

An operator without leader election has no Lease to name: it makes no claims and respects those of others.
"""

from __future__ import annotations

import enum
import logging
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import LEASE, TUNNEL
from ots_tunnel_operator.log_actions import LogAction
from ots_tunnel_operator.names import ANNOTATION_OPERATOR, ANNOTATION_SERVES, ANNOTATION_TAKEN, EVERY_NAMESPACE
from ots_tunnel_operator.times import parse_time, timestamp

logger = logging.getLogger(__name__)

#: Seconds without a change of a Lease after which its operator counts as gone; four times the Lease's duration.
TAKEOVER_SECONDS = 60.0
#: Seconds between a takeover and the first act.
GRACE_SECONDS = 15.0
#: Seconds for which an answer about another Lease is used again.
_FRESH_SECONDS = 5.0
#: Names of namespaces and Leases; an annotation may be any text.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
#: Longest text of a refusal in a message, in characters.
MAX_ERROR = 200


class Claim(enum.Enum):
    """Whether this operator may act on an object."""

    OURS = enum.auto()
    NEW = enum.auto()
    """It has just been claimed, and the object has to be read again."""
    ELSEWHERE = enum.auto()


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A Lease that this operator must not read, and when it tried."""

    error: str
    tried: float


@dataclass(slots=True)
class _OtherLease:
    """What was seen of another operator's Lease; times are those of the clock.

    Args:
        version: what changes with every renewal.
        since: time since which it is this one.
        read: time of the last look.
        serves: the namespaces of its holder, in words; empty where it does not tell.
        serves_since: time since which these are the same.
    """

    version: str
    since: float
    read: float
    serves: str
    serves_since: float

    def ended(self, namespace: str) -> float:
        """Time since which no operator has worked in a namespace by this Lease, if none does."""
        is_served = self.serves in ("", EVERY_NAMESPACE) or namespace in self.serves.split(", ")
        return self.since if is_served else self.serves_since


class Claims:
    """The claims of one operator.

    Args:
        kube: the API server.
        mine: `namespace/name` of this operator's Lease; empty without leader election.
        clock: seconds that never go back.
        wall: Unix seconds; another process compares them with its own.
    """

    def __init__(
        self,
        kube: Cluster,
        mine: str,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._kube = kube
        self._mine = mine
        self._clock = clock
        self._wall = wall
        self._leases: dict[str, _OtherLease] = {}
        self._refused: dict[str, _Refusal] = {}
        #: Object to the foreign claim it has, and since when that was seen.
        self._sighted: dict[str, tuple[str, float]] = {}
        #: Object to the end of the wait after a takeover, by the clock; in the past where there was none.
        self._waits: dict[str, float] = {}
        self._logged: dict[str, str] = {}

    async def claim(self, body: Mapping[str, Any]) -> Claim:
        """Claim an object if no other operator serves it.

        Raises:
            KubeError: the API server refuses the claim.
        """
        metadata = body["metadata"]
        uid = str(metadata.get("uid") or "")
        found = _holder(metadata)
        if found == self._mine:
            return self._after_a_takeover(metadata, uid)
        # that it waited before, or did not have to, says nothing of the next claim, whose answer may be lost
        self._waits.pop(uid, None)
        if found and not await self._is_gone(found, metadata["namespace"], self._sighting(uid, found)):
            self._log(metadata, uid, found)
            return Claim.ELSEWHERE
        if not self._mine:
            return Claim.OURS
        claim = {ANNOTATION_OPERATOR: self._mine} | ({ANNOTATION_TAKEN: timestamp(self._wall())} if found else {})
        change = {"resourceVersion": metadata.get("resourceVersion"), "annotations": claim}
        try:
            await self._kube.patch(TUNNEL, metadata["namespace"], metadata["name"], {"metadata": change})
        except KubeError as error:
            if error.status == 409:
                return Claim.NEW
            raise
        self._sighted.pop(uid, None)
        if found:
            self._waits[uid] = self._clock() + GRACE_SECONDS
        return Claim.NEW

    def forget(self, uid: str) -> None:
        """Drop what is known of an object that no longer exists."""
        self._sighted.pop(uid, None)
        self._waits.pop(uid, None)
        self._logged.pop(uid, None)

    def names_another(self, body: Mapping[str, Any]) -> bool:
        """Whether an object names another operator; whether that one is still there is not asked."""
        return _holder(body["metadata"]) not in ("", self._mine)

    def doubt(self, body: Mapping[str, Any]) -> str:
        """Why this operator cannot tell whether the one that an object names is still there; empty where it can."""
        holder = _holder(body["metadata"])
        refusal = self._refused.get(holder)
        if refusal is None:
            return ""
        namespace = holder.partition("/")[0]
        return (
            f"annotation {ANNOTATION_OPERATOR} names the operator of Lease {holder!r}; this one "
            f"({self._mine or 'without a Lease'}) must not read that Lease ({refusal.error}), so it leaves the object "
            f"alone: if the other operator is gone for good, remove the annotation, or let this one get Leases in "
            f"namespace {namespace!r}"
        )

    def _after_a_takeover(self, metadata: Mapping[str, Any], uid: str) -> Claim:
        self._sighted.pop(uid, None)
        if uid not in self._waits:
            self._waits[uid] = self._clock() + GRACE_SECONDS if self._is_just_taken(metadata) else -math.inf
        if self._clock() < self._waits[uid]:
            return Claim.ELSEWHERE
        self._logged.pop(uid, None)
        return Claim.OURS

    def _is_just_taken(self, metadata: Mapping[str, Any]) -> bool:
        """Whether an earlier leader may not have waited to the end; the clocks of two nodes may differ."""
        taken = parse_time((metadata.get("annotations") or {}).get(ANNOTATION_TAKEN))
        return taken is not None and abs(self._wall() - taken) < TAKEOVER_SECONDS

    def _sighting(self, uid: str, holder: str) -> float:
        """Since when an object has been seen with this claim, by the clock."""
        found, since = self._sighted.get(uid, ("", 0.0))
        if found != holder:
            since = self._clock()
            self._sighted[uid] = holder, since
        return since

    async def _is_gone(self, holder: str, served: str, sighted: float) -> bool:
        """Whether the Lease of this name has not changed for so long that no operator holds it, or serves a namespace.

        Args:
            served: namespace of the object.
            sighted: since when the object names it, by the clock.
        """
        namespace, _, name = holder.partition("/")
        if not (_NAME.fullmatch(namespace) and _NAME.fullmatch(name)):
            # no Lease has such a name, so nobody holds it
            return True
        known, now = self._leases.get(holder), self._clock()
        refusal = self._refused.get(holder)
        if refusal is not None and now - refusal.tried < TAKEOVER_SECONDS:
            return False
        if known is None or now - known.read >= _FRESH_SECONDS:
            found = await self._look(namespace, name)
            if found is None:
                self._leases.pop(holder, None)
                return False
            version, serves = found
            since = known.since if known is not None and known.version == version else now
            serves_since = known.serves_since if known is not None and known.serves == serves else now
            known = self._leases[holder] = _OtherLease(version, since, now, serves, serves_since)
        return now - max(known.ended(served), sighted) >= TAKEOVER_SECONDS

    async def _look(self, namespace: str, name: str) -> tuple[str, str] | None:
        """What changes with every renewal of a Lease, and which namespaces its holder serves; None where this cannot be
        read."""
        holder = f"{namespace}/{name}"
        try:
            lease = await self._kube.get(LEASE, namespace, name)
        except KubeError as error:
            if error.status in (401, 403):
                self._refused[holder] = _Refusal(str(error)[:MAX_ERROR], self._clock())
            return None
        self._refused.pop(holder, None)
        if lease is None:
            return "missing", ""
        metadata = lease["metadata"]
        serves = str((metadata.get("annotations") or {}).get(ANNOTATION_SERVES) or "")
        return f"{metadata.get('uid')}/{metadata['resourceVersion']}", serves

    def _log(self, metadata: Mapping[str, Any], uid: str, holder: str) -> None:
        if self._logged.get(uid) == holder:
            return
        self._logged[uid] = holder
        place = {"namespace": metadata["namespace"], "object": metadata["name"]}
        logger.info(
            "another operator serves the object",
            extra={"action": LogAction.SERVED_ELSEWHERE, "lease": holder, **place},
        )


def _holder(metadata: Mapping[str, Any]) -> str:
    """The Lease that an object names as `namespace/name`; empty without a claim."""
    return str((metadata.get("annotations") or {}).get(ANNOTATION_OPERATOR) or "")
