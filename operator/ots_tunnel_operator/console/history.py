"""The lag of every object in the last hour, in memory only: 4 bytes a sample, about 1 kB an object.

A restart loses it, and so does a fail-over; the page says since when it is kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from ots_tunnel_operator.console.sight import Place

#: Seconds between two samples: as often as the tunnel is looked at.
SAMPLE_SECONDS = 15.0
#: Samples kept of each object: an hour.
KEPT = 240
#: Stands for an unknown lag.
_UNKNOWN = -1
#: Largest lag that is kept; a larger one, of 68 years, is shown as this.
_MOST = 2**31 - 1


class LagHistory:
    """The last samples of every object; the newest of each is of the same moment."""

    def __init__(self) -> None:
        self._lags: dict[Place, array[int]] = {}

    def add(self, lags: Mapping[Place, int | None], *, missed: int = 0) -> None:
        """Take one sample of every object; one that is not in it is forgotten.

        Args:
            lags: in seconds; None where it is unknown.
            missed: samples that were due since the last one and could not be taken: unknown.
        """
        before, self._lags = self._lags, {}
        for place, lag in lags.items():
            kept = before.get(place) or array("i")
            if kept:
                kept.extend([_UNKNOWN] * min(missed, KEPT))
            kept.append(_UNKNOWN if lag is None else min(lag, _MOST))
            del kept[:-KEPT]
            self._lags[place] = kept

    def of(self, place: Place) -> list[int | None]:
        """The samples of an object, the oldest first; empty for one that is not known."""
        return [None if lag == _UNKNOWN else lag for lag in self._lags.get(place, ())]
