"""Worlds of an object that reads a stream by leases, without a tunnel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ots_tunnel.model import ChannelInfo, Stage, TunnelDescription, TunnelId, TunnelType
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import WorkerChannel
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.objects import EMULATOR
from tests.support.operator.worlds import channel, description, pod, recorded, report_channel, resource, world

LEASES = "flights_leases"
STREAM_ID = TunnelId("flights_1700000000")
#: Changes that make an object read a stream.
BY_LEASES: dict[str, Any] = {"source__tunnel": None, "source__stream": {"leaseTable": LEASES}}
#: status.tunnel once the stream is recorded.
STREAM_RECORD: dict[str, Any] = {
    "id": STREAM_ID,
    "endpoint": EMULATOR,
    "type": "Stream",
    "leaseTable": LEASES,
    "createdByOperator": False,
}


def stream_resource(status: dict[str, Any] | None = None, **changes: Any) -> Resource:
    """An object with a table of leases."""
    return resource(status, **(BY_LEASES | changes))


def stream_recorded(**changes: Any) -> dict[str, Any]:
    """The status of an object whose stream and destination are recorded."""
    return recorded(tunnel=dict(STREAM_RECORD)) | changes


def stream_description(*channels: ChannelInfo, **changes: Any) -> TunnelDescription:
    """Shards as the channels of a tunnel."""
    given: dict[str, Any] = {"tunnel_id": STREAM_ID, "tunnel_name": "", "create_time_ns": 0, "service_time": None}
    return description(*channels, kind=TunnelType.Stream, stage=Stage.STREAM, **(given | changes))


def stream_pod(*channels: WorkerChannel, **changes: Any) -> Pod:
    """A worker that names its table of leases."""
    found = pod("pod-1", *channels, **changes)
    return found if found.report is None else replace(found, report=replace(found.report, tunnel_id=LEASES))


def stream_world(of: Resource | None = None, **changes: Any) -> World:
    """An object that follows two shards with one worker, and is caught up."""
    given: dict[str, Any] = {
        "tunnel": Tunnel(stream_description(channel("s1"), channel("s2")), {}),
        "pods": (stream_pod(report_channel("s1"), report_channel("s2")),),
    }
    return world(of or stream_resource(stream_recorded()), **(given | changes))
