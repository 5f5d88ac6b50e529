"""Whether a job may begin, or go on; pure (docs/architecture.md 3, docs/architecture.md 4.6).

A tunnel that exists under the job's name was made by a former run: the job goes on with it. What must not happen is
that rows are missing from the copy, or that rows which are not from the source are overwritten, without anybody
having said so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ots_tunnel.errors import ConfigError, Explained, TunnelExpired
from ots_tunnel.model import ChannelStatus, TunnelDescription, TunnelType


@dataclass(frozen=True, slots=True)
class Findings:
    """What is there before anything is touched.

    Args:
        tunnel: None where there is none of that name.
        destination_exists: whether the destination table is there.
        destination_empty: whether it holds no row; of no meaning where it is missing.
    """

    tunnel: TunnelDescription | None
    destination_exists: bool
    destination_empty: bool = True


def has_moved(tunnel: TunnelDescription) -> bool:
    """Whether rows of it were consumed already."""
    return any(
        channel.rows > 0 or channel.consume_point_ns > 0 or channel.status is ChannelStatus.TERMINATED
        for channel in tunnel.channels
    )


def check_start(found: Findings, tunnel_name: str, table: str, *, merge: bool) -> None:
    """Refuse what would lose or spoil rows.

    Args:
        table: the destination.
        merge: rows that the destination has already may be overwritten, and may be missing.

    Raises:
        ConfigError: says what is wrong, and the ways out. Explained: the tunnel is expired.
    """
    if found.tunnel is None:
        if found.destination_exists and not found.destination_empty and not merge:
            raise ConfigError(
                f"destination table {table!r} holds rows, and tunnel {tunnel_name!r} does not exist yet: existing rows "
                "of the source would overwrite them; empty or rename it, or allow it with --merge"
            )
        return
    kind = found.tunnel.tunnel.tunnel_type
    if kind is not TunnelType.BaseAndStream:
        raise ConfigError(
            f"ots-reader.tunnelName: tunnel {tunnel_name!r} is of type {kind.name}, needed is BaseAndStream: "
            "give another name"
        )
    if found.tunnel.tunnel.expired:
        text = (
            f"tunnel {tunnel_name!r} has expired: changes are lost that were never copied; delete it and copy into an "
            "empty table"
        )
        raise Explained(text) from TunnelExpired("OTSTunnelExpired", text)
    behind = not found.destination_exists or found.destination_empty
    if behind and has_moved(found.tunnel) and not merge:
        state = "is empty" if found.destination_exists else "does not exist"
        raise ConfigError(
            f"tunnel {tunnel_name!r} has delivered rows already, and destination table {table!r} {state}: they would "
            "be missing; delete the tunnel to copy everything, or go on without them with --merge"
        )


def end_warning(tunnel: TunnelDescription, end: datetime) -> str | None:
    """What to say of an end time that lies before the tunnel's beginning; None where it does not.

    Existing rows are read after the tunnel's creation, so no earlier state can be had (docs/architecture.md 4.6).
    """
    created = datetime.fromtimestamp(tunnel.tunnel.create_time_ns / 1e9, UTC)
    if end >= created:
        return None
    return (
        f"endTime {end:%Y-%m-%d %H:%M:%S} UTC lies before the tunnel's creation at {created:%Y-%m-%d %H:%M:%S} UTC: "
        "rows are copied as they are when they are read, and no change is followed"
    )
