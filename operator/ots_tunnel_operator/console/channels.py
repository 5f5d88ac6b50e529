"""One object's channels over its workers. Pure.

A worker that answered tells what it holds. Of one that did not, the service's last description has the channels, and
the status the lag of the slowest ones. A channel that a further client owns is shown with that client.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ots_tunnel.model import ChannelInfo
from ots_tunnel_operator.console.sight import Sight
from ots_tunnel_operator.names import client_tag_prefix
from ots_tunnel_operator.plugin.channels import FULL_SECONDS
from ots_tunnel_operator.plugin.fleet import lag_style
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.report import HELD, HeldChannel
from ots_tunnel_operator.plugin.text.ids import shortest
from ots_tunnel_operator.world.report import WorkerReport

#: Channels that are listed, those with the largest lag; the rest is counted.
LISTED = 500


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has channels.

    Args:
        name: of the worker's pod, or a client id.
        reported: time of the worker's answer, Unix seconds; None without one.
        is_foreign: whether it is no worker that the status names, and not the client of the object's query.
    """

    name: str
    channels: tuple[HeldChannel, ...]
    rate: float | None = None
    busy: int | None = None
    error: str = ""
    reported: float | None = None
    is_foreign: bool = False
    ready: bool | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known beside the workers' answers: channels by id, and lags of the slowest ones by id."""

    described: dict[str, ChannelInfo] = field(default_factory=dict)
    slowest: dict[str, int | None] = field(default_factory=dict)
    counts_rows: bool = True
    """Whether the service counts the rows of a channel; of a shard it does not."""

    def type_of(self, channel_id: str) -> str:
        found = self.described.get(channel_id)
        return "" if found is None else found.channel_type.value

    def held_by(self, client: str) -> tuple[HeldChannel, ...]:
        return tuple(
            HeldChannel(
                channel_id,
                each.channel_type.value,
                each.status.name,
                each.rows if self.counts_rows else None,
                False,
                self.slowest.get(channel_id),
                "",
            )
            for channel_id, each in self.described.items()
            if client and str(each.client_id) == client and each.status.name in HELD
        )


def channels_document(sight: Sight) -> dict[str, Any]:
    """Holders with their channels, the latest first; the lag, in seconds, of a full bar; the word for a channel."""
    found = list(_holders(sight))
    held = [channel for holder in found for channel in holder.channels]
    listed = {channel.id for channel in sorted(held, key=_latest)[:LISTED]}
    return {
        "holders": [_holder_document(sight.ott, holder, listed) for holder in found],
        "counts": {
            kind: 0 if kind == "unowned" and sight.ott.is_asleep else sight.ott.number("channels", kind)
            for kind in ("total", "open", "closing", "terminated", "unowned")
        },
        "full": max([FULL_SECONDS, *(channel.lag or 0 for channel in held)]),
        "idWidth": shortest(channel.id for channel in held),
        "hidden": len({channel.id for channel in held} - listed),
        "part": sight.ott.part,
    }


def _holders(sight: Sight) -> Iterator[Holder]:
    known = _Known(
        {str(each.channel_id): each for each in sight.channels},
        {str(item["id"]): item.get("seconds") for item in sight.ott.entries("lag", "slowest")},
        counts_rows=not sight.ott.leases,
    )
    stated = {str(item.get("name")): item for item in sight.ott.entries("workers")}
    said = {name: kept.report for name, kept in sight.reports.items()}
    taken = {channel.channel_id for report in said.values() for channel in report.channels if channel.state in HELD}
    clients = {report.client_id for report in said.values()}
    for name in sorted({*stated, *said}):
        ready = stated[name].get("ready", False) if name in stated else None
        if name in said:
            yield _answered(name, said[name], known, sight.reports[name].time, ready)
            continue
        client = str(stated[name].get("clientId") or "")
        clients.add(client)
        left = tuple(channel for channel in known.held_by(client) if channel.id not in taken)
        yield Holder(name, left, busy=stated[name].get("busyPercent"), ready=ready)
    owners = {str(each.client_id) for each in sight.channels if str(each.client_id)} - clients
    for client in sorted(owners):
        left = tuple(channel for channel in known.held_by(client) if channel.id not in taken)
        if left:
            is_of_query = sight.ott.by_query and client.startswith(client_tag_prefix(sight.ott.uid))
            yield Holder(client, left, is_foreign=not is_of_query)


def _answered(name: str, report: WorkerReport, known: _Known, time: float, ready: bool | None) -> Holder:
    channels = tuple(
        HeldChannel(
            each.channel_id,
            known.type_of(each.channel_id),
            each.state,
            each.rows,
            each.caught_up,
            each.lag_seconds,
            each.error or "",
        )
        for each in report.channels
        if each.state in HELD
    )
    return Holder(name, channels, report.rows_per_second, report.busy_percent, report.error or "", time, ready=ready)


def _latest(channel: HeldChannel) -> tuple[int, str]:
    return -(channel.lag or 0), channel.id


def _holder_document(ott: Ott, holder: Holder, listed: set[str]) -> dict[str, Any]:
    shown = replace(holder, channels=tuple(each for each in holder.channels if each.id in listed))
    return {
        "name": holder.name,
        "total": len(holder.channels),
        "rate": holder.rate,
        "busy": holder.busy,
        "error": holder.error,
        "reported": holder.reported,
        "isForeign": holder.is_foreign,
        "ready": holder.ready,
        "channels": [
            {
                "id": each.id,
                "type": each.type,
                "state": each.state,
                "lag": each.lag,
                "lagStyle": lag_style(ott, each.lag),
                "rows": each.rows,
                "error": each.error,
            }
            for each in sorted(shown.channels, key=_latest)
        ],
    }
