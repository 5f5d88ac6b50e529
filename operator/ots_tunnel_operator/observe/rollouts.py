"""Which objects replace their workers, and which ones wait to, from the statuses of all objects. Pure.

The statuses are the only memory (`plan.rollout`): a watch brings them, and every write of this operator goes into the
same copies at once.
"""

from __future__ import annotations

import bisect
import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import RolloutTurn


@dataclass(frozen=True, slots=True)
class _Rollout:
    """One object that rolls, or waits to."""

    operator: str
    waits: bool
    place: tuple[str, str]
    """Place in the order: since when, and a draw."""


class Rollouts:
    """The objects that roll or wait to; all others are forgotten at once.

    Who has waited longer comes first. All begin to wait within moments of a new release, so a draw decides between
    those of one second; it differs from release to release, and no object or namespace is always first.

    A release makes every object wait, and each of them asks in each of its passes: so the places are kept in order.

    Args:
        release: what tells this release from others.
    """

    def __init__(self, release: str) -> None:
        self._release = release
        self._found: dict[str, _Rollout] = {}
        #: By operator: how many roll, and the places of those that wait, in order.
        self._rolling: Counter[str] = Counter()
        self._waiting: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def changed(self, body: Mapping[str, Any]) -> None:
        """Take over an object."""
        uid, (reason, since) = str(body["metadata"].get("uid") or ""), _progress(body.get("status") or {})
        self._drop(uid)
        if reason not in (Reason.ROLLING_WORKERS, Reason.ROLLOUT_WAITING):
            return
        operator, waits = _operator(body["metadata"].get("annotations")), reason == Reason.ROLLOUT_WAITING
        found = self._found[uid] = _Rollout(operator, waits, (since, self._draw(uid)))
        if waits:
            bisect.insort(self._waiting[operator], found.place)
        else:
            self._rolling[operator] += 1

    def deleted(self, body: Mapping[str, Any]) -> None:
        """Forget an object."""
        self._drop(str(body["metadata"].get("uid") or ""))

    def turn(self, resource: Resource) -> RolloutTurn:
        """What the others do that the same operator serves."""
        operator, own = _operator(resource.object.metadata.annotations), self._found.get(resource.uid)
        place = _progress(resource.status)[1], self._draw(resource.uid)
        rolling, ahead = self._rolling[operator], bisect.bisect_left(self._waiting.get(operator, ()), place)
        if own is not None and own.operator == operator:
            rolling -= not own.waits
            ahead -= own.waits and own.place < place
        return RolloutTurn(rolling=rolling, ahead=ahead)

    def _drop(self, uid: str) -> None:
        found = self._found.pop(uid, None)
        if found is None:
            return
        if not found.waits:
            self._rolling[found.operator] -= 1
            if not self._rolling[found.operator]:
                del self._rolling[found.operator]
            return
        places = self._waiting[found.operator]
        del places[bisect.bisect_left(places, found.place)]
        if not places:
            del self._waiting[found.operator]

    def _draw(self, uid: str) -> str:
        return hashlib.sha256(f"{self._release}/{uid}".encode()).hexdigest()


def _progress(status: Mapping[str, Any]) -> tuple[str, str]:
    """Reason of Progressing, and since when it is True; empty where it is not."""
    conditions = status.get("conditions") or ()
    found = (one for one in conditions if one.get("type") == "Progressing" and one.get("status") == "True")
    return next(((str(one.get("reason")), str(one.get("lastTransitionTime"))) for one in found), ("", ""))


def _operator(annotations: Mapping[str, str] | None) -> str:
    """The operator that serves an object."""
    return str((annotations or {}).get(names.ANNOTATION_OPERATOR) or "")
