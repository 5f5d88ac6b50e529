"""Row changes that are refused for good: which are put up with, and which end the write."""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.sinks import OnRefused
from ots_tunnel.sinks.table.delivery import MAX_REJECTIONS, Rejection, rejection_error
from ots_tunnel.sinks.table.row_change import Change


class Refusals:
    """The refused changes of one write: those that are put up with are passed on, the others end it.

    Args:
        refused: takes the records of single rows that are refused; None puts up with nothing.
    """

    def __init__(self, refused: OnRefused | None) -> None:
        self._refused = refused
        self._fatal: list[Rejection] = []
        #: So many refused changes of one request are looked for.
        self.most = MAX_REJECTIONS if refused is None else float("inf")

    def __repr__(self) -> str:
        return f"Refusals({len(self._fatal)} fatal)"

    def take(self, rejections: Iterable[Rejection]) -> list[Change]:
        """Changes that are done with, though they are not stored."""
        passed = []
        for rejection in rejections:
            record = rejection.change.record
            if self._refused is None or not rejection.is_about_the_row:
                self._fatal.append(rejection)
            else:
                self._refused(record, rejection.code, rejection.message)
                passed.append(rejection.change)
        return passed

    def end_the_write(self) -> bool:
        """Whether a change is refused that is not put up with."""
        return bool(self._fatal)

    def check(self) -> None:
        """See that nothing ends the write.

        Raises:
            SinkRejected: changes are refused that are not put up with.
        """
        if self._fatal:
            raise rejection_error(self._fatal)
