"""Records that the sink refused for good and that were left out, counted over all workers there ever were. Pure.

Theory of operation
-------------------
A worker counts since the start of its process (docs/architecture.md rule 17). status.refused has the sum; beside it
status.workers has, for each pod, the count that is in the sum already, and the start of the process that it is of. All
are written at once, so an operator that starts again adds nothing twice.

    a pod's count grew           the difference is added
    its process started again,   the whole count is added: it may be as high as that of the process before; a worker of
    or its count fell            an earlier release does not tell its start, and shows it by a lower count alone
    a pod did not answer         what is in the sum of its count is kept for the next answer

Example: a worker has refused 5 records, and the sum is 5. Its container ends after 2 more that no look has seen, starts
again and refuses the last 4 again: it tells 4, and the sum is 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.api.status import MAX_WORKERS
from ots_tunnel_operator.assess.completion import unasked, was_completed
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.times import parse_time, timestamp
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import RefusedCount
from ots_tunnel_operator.world.world import World

_NONE = RefusedCount()


@dataclass(frozen=True, slots=True)
class Refusals:
    """What was refused.

    Args:
        total: over all workers.
        last_time: at which the sum grew last, or workers could not be asked, as RFC 3339.
        unknown: workers that could not be asked at the end.
        counted: name of a pod -> what of its count is in the sum.
    """

    total: RefusedCount = _NONE
    last_time: str = ""
    unknown: int = 0
    counted: Mapping[str, RefusedCount] = field(default_factory=dict)

    def document(self) -> dict[str, Any] | None:
        """The value of status.refused; None where nothing was refused."""
        if not self.total.records and not self.unknown:
            return None
        found = {"records": self.total.records, "keys": self.total.keys, "lastTime": self.last_time}
        return found | ({"unknownWorkers": self.unknown} if self.unknown else {})


def find_refusals(world: World, *, completed: bool = False) -> Refusals:
    """What was refused until this look.

    Args:
        world: what was observed.
        completed: whether everything is delivered, so that the workers go now or have gone.
    """
    status = world.resource.status
    recorded = status.get("refused") or {}
    records, keys = int(recorded.get("records") or 0), int(recorded.get("keys") or 0)
    before = {item["name"]: _count(item) for item in status.get("workers") or ()}
    counted: dict[str, RefusedCount] = {}
    for pod in _listed(world, before):
        known = before.get(pod.name, _NONE)
        told = _told(pod, known)
        if told.records < known.records or _is_of_another_process(told, known):
            known = _NONE
        records += told.records - known.records
        keys += max(0, told.keys - known.keys)
        counted[pod.name] = told
    # of those that are gone afterwards, no later look knows
    silent = unasked(world) if completed and not was_completed(world) else 0
    has_grown = silent or records > int(recorded.get("records") or 0)
    last = timestamp(world.now) if has_grown else str(recorded.get("lastTime") or "")
    return Refusals(RefusedCount(records, keys), last, int(recorded.get("unknownWorkers") or 0) + silent, counted)


def _listed(world: World, before: Mapping[str, RefusedCount]) -> list[Pod]:
    """The pods that status.workers lists, in this order.

    One that it does not list has no place for its count, which would be added in every look. So a pod whose count is in
    the sum keeps its place as long as it lives, and one that has something to add goes before those that have not.
    """

    def place(pod: Pod) -> tuple[bool, bool, str]:
        known = before.get(pod.name, _NONE)
        return not known.records, not _told(pod, known).records, pod.name

    return sorted((pod for pod in world.pods if pod.is_alive), key=place)[:MAX_WORKERS]


def find_refused(world: World) -> Problem | None:
    """Records that were left out and that no person has accepted yet."""
    found = find_refusals(world).total.records
    if not found or are_accepted(world, found):
        return None
    return Problem(
        Reason.RECORDS_REFUSED,
        "the sink refused records for good, and delivery.onPermanentError left them out, so that rows may be there in "
        "part: status.refused counts them, and the workers' log names keys (action records_refused); repair the rows, "
        f"then set the annotation {names.ANNOTATION_ACCEPT_REFUSED} to exactly the number in status.refused.records",
    )


def are_accepted(world: World, records: int) -> bool:
    """Whether a person has accepted exactly so many records that were left out.

    A higher number is not about these records: GitOps applies the one of an earlier object of this name again.
    """
    accepted = world.resource.object.metadata.annotations.get(names.ANNOTATION_ACCEPT_REFUSED, "")
    return str(records) == accepted.strip()


def _is_of_another_process(told: RefusedCount, known: RefusedCount) -> bool:
    """Whether two counts are certainly of two processes; the status has times in whole seconds."""
    return told.since is not None and known.since is not None and int(told.since) != int(known.since)


def _told(pod: Pod, known: RefusedCount) -> RefusedCount:
    return known if pod.report is None or pod.report.refused is None else pod.report.refused


def _count(item: Mapping[str, Any]) -> RefusedCount:
    records, keys = (int(item.get(key) or 0) for key in ("refusedRecords", "refusedKeys"))
    return RefusedCount(records, keys, parse_time(item.get("refusedSince")))
