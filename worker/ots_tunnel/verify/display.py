"""How far a comparison is, in one line and as a share; pure."""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel.console.progress_bar import duration
from ots_tunnel.verify.job import Meter


@dataclass(frozen=True, slots=True)
class MeterPicture:
    """What is shown of a meter; see `display.Shows`."""

    meter: Meter

    @property
    def share(self) -> float | None:
        """How many of the slices are done, 0 to 1."""
        return self.meter.slices_done / self.meter.slices if self.meter.slices else None

    def line(self, seconds: float) -> str:
        """One line, `seconds` after the run began."""
        return meter_line(self.meter, seconds)


def meter_line(meter: Meter, seconds: float) -> str:
    """One line of progress, `seconds` after the run began; pure."""
    rate = (meter.rows - meter.rows_before) / seconds if seconds > 0 else 0.0
    parts = [
        f"{meter.rows:,} rows",
        f"{rate:,.0f} rows/s",
        f"slices {meter.slices_done:,}/{meter.slices:,}",
        f"{meter.differences:,} differences",
    ]
    if meter.suspects:
        parts.append(f"{meter.suspects:,} rows to look at again")
    if (left := seconds_left(meter, seconds)) is not None:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts)


def seconds_left(meter: Meter, seconds: float) -> float | None:
    """Estimate from the slices of this run; None before the first is done, and after the last. Pure."""
    done = meter.slices_done - meter.slices_before
    left = meter.slices - meter.slices_done
    return left * seconds / done if done > 0 and left else None
