"""What becomes of the operator's calls to the API server, by the seed and the faults that are under way."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.simulation.apiserver.api import Request
from tests.simulation.apiserver.client import Fate
from tests.simulation.apiserver.refusal import Refusal
from tests.simulation.machine.loop import VirtualLoop

#: Seconds that a request takes in one direction.
USUAL, SLOW = (0.001, 0.02), (0.5, 8.0)
#: Kinds without which a pass observes nothing.
BLINDING = frozenset({"pods", "secrets"})


@dataclass(frozen=True, slots=True)
class _Refused:
    """Requests that are refused for a while: those whose path has a part of this name, or all."""

    refusal: Refusal
    since: float
    until: float
    what: str
    finalizers: bool = False
    """Only writes of finalizers."""
    reads: bool = False
    """Only reads."""

    def concerns(self, request: Request) -> bool:
        """Whether a request is refused."""
        if self.reads and request.method != "GET":
            return False
        return self.what in ("", *request.path.split("/")) and (not self.finalizers or _has_finalizers(request))


@dataclass(frozen=True, slots=True)
class _Crash:
    """The end of the operator at a write."""

    left: int
    """Writes before that one."""
    before: bool
    away: float
    orderly: bool


class Fates:
    """Decides the fate of each request of the operator.

    Args:
        end: ends the operator for some seconds: at once, or in order.
        wrote: called with every write that is sent.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        chance: random.Random,
        end: Callable[[float, bool], None],
        wrote: Callable[[Request], None],
    ) -> None:
        self._loop = loop
        self._chance = chance
        self._end = end
        self._wrote = wrote
        self._refusals: list[_Refused] = []
        self._forbidden: list[tuple[Refusal, Callable[[Request], bool]]] = []
        self._crash: _Crash | None = None
        self._unheld: tuple[Refusal, float] | None = None
        self.slow_until = 0.0
        self.stale_until = 0.0
        #: Answers to writes that get lost.
        self.lost = 0
        #: Times of the writes that were sent.
        self.writes: list[float] = []

    def clear(self) -> None:
        """End every fault."""
        self._refusals, self._crash, self._unheld = [], None, None
        self._forbidden.clear()
        self.slow_until = self.stale_until = 0.0
        self.lost = 0

    @property
    def busy_until(self) -> float:
        """When the last fault that lasts for a time is over."""
        return max(self.slow_until, self.stale_until, *(refused.until for refused in self._refusals))

    @property
    def blind_since(self) -> float | None:
        """Since when reads of one kind are refused, and nothing keeps the operator from writing the status."""
        now = self._loop.now
        refused = [refused for refused in self._refusals if now < refused.until]
        can_write = now > max(self.slow_until, self.stale_until) and not self.lost
        if not refused or not can_write or any(each.what not in BLINDING for each in refused):
            return None
        return min(each.since for each in refused)

    def refuse(self, refusal: Refusal, until: float, what: str = "") -> None:
        """Refuse every request whose path has a part of this name for a while; all without one."""
        self._refusals.append(_Refused(refusal, self._loop.now, until, what))

    def refuse_reads(self, refusal: Refusal, until: float, what: str) -> None:
        """Refuse to read, list and watch what has a part of this name in its path."""
        self._refusals.append(_Refused(refusal, self._loop.now, until, what, reads=True))

    def forbid(self, refusal: Refusal, concerns: Callable[[Request], bool]) -> None:
        """Refuse certain requests until every fault is ended."""
        self._forbidden.append((refusal, concerns))

    def crash(self, writes: int, *, before: bool, away: float, orderly: bool) -> None:
        """End the operator at a write, after so many others: before it takes effect, or before its answer arrives."""
        self._crash = _Crash(writes, before, away, orderly)

    def refuse_finalizers(self, refusal: Refusal, seconds: float) -> None:
        """Refuse writes of finalizers for a while, from the next one on."""
        self._unheld = refusal, seconds

    def __call__(self, request: Request) -> Fate:
        """The fate of a request."""
        now, is_read = self._loop.now, request.method == "GET"
        if self._unheld is not None and _has_finalizers(request):
            refusal, seconds = self._unheld
            self._unheld = None
            self._refusals.append(_Refused(refusal, now, now + seconds, "tablestoretunnels", finalizers=True))
        seconds = SLOW if now < self.slow_until else USUAL
        before, after = self._chance.uniform(*seconds), self._chance.uniform(*seconds)
        for refused in self._refusals:
            if now < refused.until and refused.concerns(request):
                return Fate(before, 0.0, refusal=refused.refusal)
        for refusal, concerns in self._forbidden:
            if concerns(request):
                return Fate(before, 0.0, refusal=refusal)
        if is_read:
            behind = self._chance.randint(1, 6) if now < self.stale_until else 0
            return Fate(before, after, versions_behind=behind)
        self.writes.append(now)
        self._wrote(request)
        self._strike(before, after)
        if self.lost > 0:
            self.lost -= 1
            return Fate(before, after, is_lost=True)
        return Fate(before, after)

    def _strike(self, before: float, after: float) -> None:
        crash = self._crash
        if crash is None:
            return
        if crash.left > 0:
            self._crash = replace(crash, left=crash.left - 1)
            return
        self._crash = None
        self._loop.after(before / 2 if crash.before else before + after / 2, self._end, crash.away, crash.orderly)


def _has_finalizers(request: Request) -> bool:
    return "finalizers" in ((request.body or {}).get("metadata") or {})
