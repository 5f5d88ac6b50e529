"""Whether a job may start or resume. Pure (docs/architecture.md 3.2 and 4.6).

A tunnel that exists under the job's name belongs to an earlier run, and the job resumes with it. Without `--merge` a
job must not leave rows out of the copy, nor overwrite rows that did not come from the source. An empty destination
lacks nothing if the tunnel has delivered no row, or if the source has no row any more: what happened since is still in
the stream. A destination with rows must be the one that the tunnel has delivered to: the state file of an earlier run
knows it (`state`), otherwise the tables may tell (`evidence`), once the tunnel has delivered rows: one that was made
by hand and has delivered none has no rows there. A table that the state file knows is the only one, empty
or not and with the first row or before it: a run that copies there may still be at work.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from ots_tunnel.errors import ConfigError, Explained, TunnelExpired
from ots_tunnel.model import TunnelDescription, TunnelType
from ots_tunnel.verify.state_document import TablePlace


@dataclass(frozen=True, slots=True)
class Findings:
    """The state of tunnel and destination before anything is changed.

    Args:
        tunnel: the tunnel; None if none has that name.
        destination_exists: whether the destination table exists.
        destination_empty: whether the destination holds no row; meaningless if it does not exist.
        source_empty: whether the source is known to hold no row.
        other: the table that another run of this tunnel writes to, if that is another one.
        foreign: whether the destination is known to lack what the tunnel has delivered.
        known: whether an earlier run of this tunnel has noted the destination as its own.
    """

    tunnel: TunnelDescription | None
    destination_exists: bool
    destination_empty: bool = True
    source_empty: bool = False
    other: TablePlace | None = None
    foreign: bool = False
    known: bool = False


def check_start(found: Findings, tunnel_name: str, table: str, end: datetime, *, merge: bool) -> None:
    """Refuse a job that would lose or overwrite rows.

    Args:
        table: destination table.
        end: end time of the job, with a time zone.
        merge: allow rows of the destination to be overwritten, and rows of the source to be missing.

    Raises:
        ConfigError: the job must not start; the text names the reason and the ways out.
        Explained: the tunnel has expired.
    """
    if found.tunnel is not None:
        _check_tunnel(found.tunnel, tunnel_name, end)
    if merge:
        return
    if found.other is not None:
        # Whatever the tunnel has delivered: a run that copies there may be at work, and would share the channels.
        raise ConfigError(
            f"tunnel {tunnel_name!r} delivers rows to {found.other}, and ots-writer names {table!r}: they would be "
            "missing there, and rows that are there would be overwritten; correct ots-writer, give another tunnelName "
            "to copy everything, or go on without them with --merge"
        )
    if found.tunnel is None or not has_delivered(found.tunnel):
        _check_undelivered(found, tunnel_name, table)
    else:
        _check_delivered(found, tunnel_name, table)


def _check_tunnel(tunnel: TunnelDescription, tunnel_name: str, end: datetime) -> None:
    kind = tunnel.tunnel.tunnel_type
    if kind is not TunnelType.BaseAndStream:
        raise ConfigError(
            f"ots-reader.tunnelName: tunnel {tunnel_name!r} has type {kind.name}, needed is BaseAndStream: "
            "give another name"
        )
    config = tunnel.tunnel.stream_config
    # in microseconds: those of a time are exact as an integer, and its nanoseconds are not
    if config is not None and 0 < config.end_offset_ns // 1000 < round(end.timestamp() * 1e6):
        own = datetime.fromtimestamp(config.end_offset_ns / 1e9, UTC)
        raise ConfigError(
            f"ots-reader.tunnelName: tunnel {tunnel_name!r} ends by itself at {own:%Y-%m-%d %H:%M:%S} UTC, before "
            f"endTime {end:%Y-%m-%d %H:%M:%S} UTC, and later changes would be missing: give another name, or an "
            "earlier endTime"
        )
    if tunnel.tunnel.expired:
        text = (
            f"tunnel {tunnel_name!r} has expired: changes that were not copied are lost; delete it and copy into an "
            "empty table"
        )
        raise Explained(text) from TunnelExpired("OTSTunnelExpired", text)


def _check_undelivered(found: Findings, tunnel_name: str, table: str) -> None:
    """Whose rows are there, if not the tunnel's: a run that is killed early has noted its table before it wrote."""
    if found.destination_exists and not found.destination_empty and not found.known:
        reason = "does not exist yet" if found.tunnel is None else "has delivered none of them, as far as is known"
        raise ConfigError(
            f"destination table {table!r} holds rows, and tunnel {tunnel_name!r} {reason}: existing rows "
            "of the source would overwrite them; empty or rename it, or allow it with --merge"
        )


def _check_delivered(found: Findings, tunnel_name: str, table: str) -> None:
    behind = not found.destination_exists or found.destination_empty
    if behind and not found.source_empty:
        state = "is empty" if found.destination_exists else "does not exist"
        raise ConfigError(
            f"tunnel {tunnel_name!r} has delivered rows already, and destination table {table!r} {state}: they would "
            "be missing; delete the tunnel to copy everything, or resume without them with --merge"
        )
    if found.foreign:
        raise ConfigError(
            f"tunnel {tunnel_name!r} has delivered rows already, and destination table {table!r} holds none of those "
            "that were looked for, but others: it is not the table of the earlier runs; correct ots-writer, give "
            "another tunnelName to copy everything, or go on without them with --merge"
        )


def has_delivered(tunnel: TunnelDescription) -> bool:
    """Whether rows were consumed; a tunnel of an empty table moves on and ends channels without any."""
    return any(channel.rows > 0 for channel in tunnel.channels)


def end_warning(tunnel: TunnelDescription, end: datetime) -> str | None:
    """Warning about an end time before the tunnel's creation; None otherwise.

    Existing rows are read after the tunnel's creation, so no earlier state can be copied (docs/architecture.md 4.6).
    """
    created = datetime.fromtimestamp(tunnel.tunnel.create_time_ns / 1e9, UTC)
    if end >= created:
        return None
    return (
        f"endTime {end:%Y-%m-%d %H:%M:%S} UTC lies before the tunnel's creation at {created:%Y-%m-%d %H:%M:%S} UTC: "
        "rows are copied with their values at the time of the copy, and no changes are followed"
    )
