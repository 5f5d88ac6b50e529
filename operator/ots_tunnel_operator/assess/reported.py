"""What workers report of channels, and which report of one counts. Pure.

A worker that was frozen, or cut off from the service, still reports the channels that it had, beside the worker that
has them meanwhile. What it has consumed has reached the sink; whether a channel is caught up only its owner knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ots_tunnel.model import ChannelId, TunnelDescription
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import WorkerChannel

#: States of a worker's channel while the worker has it; reports on other states describe the past.
HELD = frozenset({"OPEN", "CLOSING"})


@dataclass(frozen=True, slots=True)
class Reported:
    """What the worker in a pod reports of a channel; `is_owner` is whether the service says that it has it."""

    pod: str
    channel: WorkerChannel
    is_owner: bool

    @property
    def rank(self) -> tuple[bool, bool]:
        """What decides between two reports of one channel."""
        return self.channel.state in HELD, self.is_owner


def reported_channels(pods: Sequence[Pod], description: TunnelDescription | None = None) -> dict[str, Reported]:
    """Channel id -> what a worker reports of it; of several reports one of a held channel counts, and of those the
    owner's.

    Args:
        pods: of the object.
        description: tells the owners; without one there is none.
    """
    owners = {} if description is None else {found.channel_id: found.client_id for found in description.channels}
    reports: dict[str, Reported] = {}
    for pod in pods:
        client, channels = (pod.report.client_id, pod.report.channels) if pod.report is not None else ("", ())
        for channel in channels:
            is_owner = bool(client) and owners.get(ChannelId(channel.channel_id)) == client
            found, before = Reported(pod.name, channel, is_owner), reports.get(channel.channel_id)
            if before is None or before.rank <= found.rank:
                reports[channel.channel_id] = found
    return reports
