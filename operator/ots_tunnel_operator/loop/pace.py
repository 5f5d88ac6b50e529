"""How long a loop pauses between two passes.

The pause until the next pass is, by the first case that applies:

    a problem or an error               1 s, doubled up to 60 s, +- 10 % (Settings.backoff_*)
    a wait that no watch reports        2 s (POLLED_WAITS, Settings.wait_seconds)
    otherwise                           15 s to 15.75 s after the last DescribeTunnel (Settings.poll_seconds)

and at least 1 s (Settings.gap_seconds). Within it an event of the object or of a child starts the next pass at once,
but not before the gap: a rollout causes dozens of pod events in a second, and one pass sees them all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings

#: Seconds after which an object is taken for gone that no read finds, although no watch has told that it was deleted.
ABSENT_SECONDS = 300.0

#: Waits whose end no watch reports: it happens in the service or in Spark.
POLLED_WAITS = frozenset(
    {
        Reason.TUNNEL_INITIALISING,
        Reason.CREATING_TUNNEL,
        Reason.CREATING_DESTINATION,
        Reason.SNAPSHOT_RUNNING,
        Reason.PREDECESSOR_GOING,
    }
)

#: Problems that end by themselves and whose end no watch reports: growing pauses would only show them for longer.
SPARK_PROBLEMS = frozenset({Reason.SPARK_OPERATOR_MISSING, Reason.SNAPSHOT_RETRYING, Reason.QUERY_RETRYING})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a pass: seconds until the next one; `gone` where the object no longer exists, `elsewhere` where
    another operator serves it, so that nothing was observed; `in_doubt` where it cannot be read whether that one still
    runs."""

    delay: float
    gone: bool = False
    elsewhere: bool = False
    in_doubt: bool = False


class Pace:
    """The pauses of all loops.

    Args:
        settings: of the process.
        metrics: of the process.
        clock: Unix seconds.
        entropy: randomness of the pauses.
    """

    def __init__(
        self, settings: Settings, metrics: OperatorMetrics, clock: Callable[[], float], entropy: random.Random
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._entropy = entropy
        self._backoff = Backoff(settings.backoff_seconds, 2.0, settings.backoff_max_seconds, 0.1)

    def absent(self, cache: LoopCache) -> Outcome:
        """The end of a pass that did not find its object: it is gone, or no read shows it yet.

        The watch that started the loop may be ahead of the one that keeps the copies, and a loop that has ended is
        never started again.
        """
        now = self._clock()
        cache.absent_since = now if cache.absent_since is None else cache.absent_since
        if now - cache.absent_since > ABSENT_SECONDS:
            return Outcome(0.0, gone=True)
        return self._delayed(cache)

    def planned(self, decided: Plan, cache: LoopCache) -> Outcome:
        """The end of a pass that has observed its object."""
        if decided.problem is not None and decided.problem.reason not in SPARK_PROBLEMS:
            return self.failed(decided.problem, cache)
        cache.failures = 0
        if decided.problem is None and decided.wait is not None and decided.wait.reason in POLLED_WAITS:
            return Outcome(min(self._settings.wait_seconds, self._settings.poll_seconds))
        # loops spread over time; never below a poll, or a figure would wait for the pass after the next
        delay = self._settings.poll_seconds * self._entropy.uniform(1.0, 1.05)
        if cache.tunnel is not None:
            # an event in between must not delay the next DescribeTunnel
            delay += min(0.0, cache.tunnel_time - self._clock())
        return Outcome(max(delay, self._settings.gap_seconds))

    def failed(self, problem: Problem, cache: LoopCache) -> Outcome:
        """The end of a pass with a problem, which is counted."""
        self._metrics.failed(str(problem.reason))
        return self._delayed(cache)

    def _delayed(self, cache: LoopCache) -> Outcome:
        """A pause that grows from pass to pass."""
        delay = self._backoff.delay(cache.failures, self._entropy.random())
        cache.failures += 1
        return Outcome(max(delay, self._settings.gap_seconds))
