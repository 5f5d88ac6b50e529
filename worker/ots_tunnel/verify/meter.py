"""Progress of a comparison: counts, the share that is done, one line of text. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.console.progress_bar import duration


@dataclass(slots=True)
class VerifyMeter:
    """Counts of one run.

    Args:
        slices: slices to compare, in all runs of this comparison.
        slices_done: those that are compared, in all runs.
        slices_before: those that earlier runs compared.
        rows: rows of the first table compared, in all runs.
        rows_before: rows that earlier runs compared.
        differences: rows that differ, in finished slices.
        suspects: rows that wait for their recheck.
    """

    slices: int = 0
    slices_done: int = 0
    slices_before: int = 0
    rows: int = 0
    rows_before: int = 0
    differences: int = 0
    suspects: int = 0

    @property
    def share(self) -> float | None:
        """Share of the slices that is done, 0 to 1; None where there is no slice."""
        return self.slices_done / self.slices if self.slices else None

    def line(self, seconds: float) -> str:
        """One line of progress, `seconds` after the run began."""
        rate = (self.rows - self.rows_before) / seconds if seconds > 0 else 0.0
        parts = [
            f"{self.rows:,} rows",
            f"{rate:,.0f} rows/s",
            f"slices {self.slices_done:,}/{self.slices:,}",
            f"{self.differences:,} differences",
        ]
        if self.suspects:
            parts.append(f"{self.suspects:,} rows to recheck")
        if (left := self.seconds_left(seconds)) is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def seconds_left(self, seconds: float) -> float | None:
        """Estimate from the slices of this run; None before the first and after the last one is done."""
        done = self.slices_done - self.slices_before
        left = self.slices - self.slices_done
        return left * seconds / done if done > 0 and left else None
