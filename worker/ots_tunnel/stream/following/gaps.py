"""Changes of a shard that may be missing, because they were not read while the stream kept them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ots_tunnel.errors import PossibleGap
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.possible_gap import Gap
from ots_tunnel.stream.shards import ShardId

logger = logging.getLogger(__name__)


class ShardGaps:
    """Reports gaps as a tunnel's worker does (docs/architecture.md 3.8).

    Args:
        stops: whether a gap is an error.
        on_gap: called with every gap, for status and metrics.
    """

    def __init__(self, *, stops: bool, on_gap: Callable[[ShardId, Gap], None]) -> None:
        self.stops = stops
        self._on_gap = on_gap

    def __repr__(self) -> str:
        return f"ShardGaps(stops={self.stops})"

    def found(self, shard_id: ShardId, gap: Gap) -> None:
        """Report a gap.

        Raises:
            PossibleGap: gaps are errors.
        """
        error = PossibleGap(shard_id, gap.start, gap.end)
        self._on_gap(shard_id, gap)
        if self.stops:
            raise error
        fields = {"channel_id": shard_id, "error": str(error)}
        logger.warning("going on behind a possible gap", extra={"action": LogAction.POSSIBLE_GAP, **fields})
