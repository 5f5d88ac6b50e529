"""What a rewind to the oldest change goes on losing until its tunnel is first read. Pure.

Such a tunnel begins with whatever the stream still keeps when a worker first reads it, however long the object stays
suspended after its reset. Nothing about the tunnel tells that: it has no start offset, and its promise begins with its
creation (`protocol.possible_gap`). So while it is unread, status.lost follows what the stream keeps, from the time
until which everything was delivered before the reset. Its end is rounded up to a full hour: one write an hour.

Example: retention 7 days, everything was delivered until the 1st, the reset is of the 5th, and the object is resumed on
the 10th: what was committed from the 1st to the 3rd is lost, although nothing was when it was reset.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ots_tunnel.model import ChannelStatus, ChannelType
from ots_tunnel_operator.assess.read_mark import ReadMark
from ots_tunnel_operator.reset.forms import Loss, Lost
from ots_tunnel_operator.reset.needs import START_MARGIN
from ots_tunnel_operator.reset.record import State, lost_document, recorded_loss
from ots_tunnel_operator.reset.request import Form
from ots_tunnel_operator.times import parse_time
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World

#: The end of what is lost is rounded up to this many seconds.
_ROUNDED_TO = 3600.0


def lost_so_far(world: World, mark: ReadMark | None) -> Mapping[str, Any] | None:
    """The value of status.lost after this look; None where nothing is lost.

    Args:
        world: what was observed, of the recorded tunnel.
        mark: `read_mark` of this world.
    """
    status = world.resource.status
    stored: Mapping[str, Any] | None = status.get("lost")
    gone = _gone_since(world) if mark is None and _is_unread_rewind(world) else None
    if gone is None:
        return stored
    loss = recorded_loss(status)
    start = parse_time(status["reset"].get("deliveredUntil")) if loss is None else loss.start
    covered = start if loss is None else loss.end
    if covered is not None and gone <= covered:
        return stored
    end = math.ceil(gone / _ROUNDED_TO) * _ROUNDED_TO
    found = lost_document(Loss(Lost.CHANGES, start, end)) or {}
    return {key: value for key, value in found.items() if value is not None}


def _gone_since(world: World) -> float | None:
    """Changes from before this time may be gone from the stream, Unix seconds; None is unknown."""
    table = world.source
    if not isinstance(table, Table) or not table.stream_retention_seconds:
        return None
    service = world.tunnel.description.service_time if isinstance(world.tunnel, Tunnel) else None
    now = max(world.now, service or 0.0)
    return now - table.stream_retention_seconds + START_MARGIN


def _is_unread_rewind(world: World) -> bool:
    """Whether the last reset has begun with the oldest change, and nothing of its tunnel was read yet."""
    told = world.resource.status.get("reset") or {}
    is_rewind = told.get("state") == State.DONE and told.get("form") == Form.REWIND and not told.get("startTime")
    if not is_rewind or told.get("tunnelId") != world.resource.recorded_tunnel.get("id"):
        return False
    if not isinstance(world.tunnel, Tunnel):
        return False
    reports = [pod.report for pod in world.pods if pod.report is not None]
    if any(channel.consumed_up_to is not None for report in reports for channel in report.channels):
        return False
    return not any(
        channel.consume_point_ns or channel.status is ChannelStatus.TERMINATED
        for channel in world.tunnel.description.channels
        if channel.channel_type is ChannelType.STREAM
    )
