"""Refused changes of one write: tolerated ones go to the batch's callback, any other fails the write."""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.sinks import OnRefused
from ots_tunnel.sinks.table.batch_write import MAX_REFUSALS, Refusal, refusal_error
from ots_tunnel.sinks.table.row_change import Change


class Refusals:
    """The refused changes of one write, over all of its requests.

    Args:
        on_refused: called with the record of every refused row; None tolerates no refusal.
    """

    def __init__(self, on_refused: OnRefused | None) -> None:
        self._on_refused = on_refused
        self._fatal: list[Refusal] = []
        #: Refused changes after which one request ends.
        self.max_per_request = MAX_REFUSALS if on_refused is None else float("inf")

    def __repr__(self) -> str:
        return f"Refusals({len(self._fatal)} fatal)"

    def tolerate(self, refusals: Iterable[Refusal]) -> list[Change]:
        """Call back with what is tolerated, keep the rest as fatal; return the tolerated changes."""
        tolerated = []
        for refusal in refusals:
            if self._on_refused is None or not refusal.is_about_the_row:
                self._fatal.append(refusal)
            else:
                self._on_refused(refusal.change.record, refusal.code, refusal.message)
                tolerated.append(refusal.change)
        return tolerated

    def is_fatal(self) -> bool:
        """Whether a refusal fails the write."""
        return bool(self._fatal)

    def raise_fatal(self) -> None:
        """Fail the write if a refusal is fatal.

        Raises:
            SinkRejected: names the first refusal and the keys of at most ten.
        """
        if self._fatal:
            raise refusal_error(self._fatal)
