"""One channel as the status shows it: an entry of `/channels`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel.model import ChannelStatus
from ots_tunnel.worker.progress.channel_progress import ChannelProgress
from ots_tunnel.worker.status.iso_time import iso_time


@dataclass(slots=True)
class ChannelView:
    """A channel that this worker holds: its progress, and its status in the next heartbeat."""

    progress: ChannelProgress
    status: ChannelStatus
    checkpoint_age: Callable[[], float] = field(default=lambda: 0.0, repr=False)


def channel_document(view: ChannelView, now: float) -> dict[str, Any]:
    """One entry of `/channels`; `now` is by the service's clock."""
    progress = view.progress
    lag = progress.lag(now)
    return {
        "id": progress.channel_id,
        "type": progress.channel_type.value,
        "state": view.status.name,
        "rowsTotal": progress.rows,
        "caughtUp": progress.caught_up,
        "caughtUpTime": iso_time(progress.caught_up_time),
        "consumedUpTo": iso_time(progress.consumed_up_to),
        "lagSeconds": None if lag is None else math.floor(lag),
        "finished": progress.finished,
        "endReached": progress.end_reached,
        "error": progress.error,
    }
