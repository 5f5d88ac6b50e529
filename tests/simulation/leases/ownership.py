"""Judge of the leases: a shard that is not read to its end has an owner that lives, or has one soon."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.simulation.oracles.delivery import Violate


class Ownership:
    """Looks from time to time.

    Args:
        within: seconds without faults in which a shard has to have an owner.
    """

    def __init__(self, violate: Violate, within: float) -> None:
        self._violate = violate
        self._within = within
        self._owned_at: dict[str, float] = {}
        #: Since when nothing goes wrong; None while something may.
        self.calm_since: float | None = None

    def look(self, now: float, shards: Iterable[str], is_owned: Callable[[str], bool]) -> None:
        """Look at the shards that are not read to their end.

        Args:
            is_owned: whether a worker that runs holds the lease of a shard.
        """
        for shard in shards:
            if is_owned(shard):
                self._owned_at[shard] = now
            elif self.calm_since is not None:
                since = max(self.calm_since, self._owned_at.get(shard, 0.0))
                if now - since > self._within:
                    self._violate("unowned", f"shard {shard[:8]} has no owner since {since:.3f} s")
