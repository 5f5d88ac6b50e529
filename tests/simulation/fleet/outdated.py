"""Oracle of decisions that the API server has refused because their object has changed since.

outdated    what was decided from an old version of the object, and was refused for that, is not sent again: the next
            decision is made from the object as it is, however late watches are

Each repetition would be refused as well: the object says nothing new meanwhile, and the API server has the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.apiserver.api import Request

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds for which a pass goes on with a read of the API server that was out of date itself.
PASS_SECONDS = 60.0


class Outdated:
    """Remembers the last status of an operator that is refused."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._refused = ("", "")

    def judge(self, request: Request) -> None:
        """Judge a write of the operator."""
        fleet = self._fleet
        if request.path != f"{fleet.path}/status" or not fleet.is_outdated(request):
            return
        process = fleet.operator.process
        sent = process.name if process else "", str((request.body or {})["metadata"]["resourceVersion"])
        if sent == self._refused and fleet.loop.now > fleet.fates.stale_until + PASS_SECONDS:
            fleet.violate("outdated", f"a status for version {sent[1]} of the object is sent again, after its refusal")
        # an answer that gets lost tells nobody of the refusal
        self._refused = sent if not fleet.fates.lost else ("", "")
