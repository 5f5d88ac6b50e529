"""Observed worlds for tests: a healthy one, and changes to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ots_tunnel.model import (
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    Credentials,
    KeyColumn,
    KeyType,
    Stage,
    StreamConfig,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.tables import TableSchema
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.assess.assessment import Assessment, assess
from ots_tunnel_operator.plan.actions import Plan
from ots_tunnel_operator.plan.planner import plan
from ots_tunnel_operator.report.status import build_status
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.report import SinkContact, WorkerChannel, WorkerReport
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.objects import EMULATOR, tunnel_object

NOW = 1_800_000_000.0
UID = "0123456789abcdef"
TUNNEL_ID = TunnelId("11111111-2222-3333-4444-555555555555")
SETTINGS = Settings(worker_image="worker:1", spark_image="spark:1")
SCHEMA = TableSchema("flights", (KeyColumn("pk", KeyType.STRING),), max_versions=3)
COPY = replace(SCHEMA, name="flights_copy", deviation_seconds=9_223_372_036_854)
KEYS = Credentials("id", "secret")
FRESH = Checkpoint(Token("CAISCxIFaXQ6NTAYACAy"), 0)


#: The destination as its record names it.
PLACE = {"endpoint": EMULATOR, "instance": "demo", "table": "flights_copy"}


def resource(status: dict[str, Any] | None = None, *, deleted: bool = False, **changes: Any) -> Resource:
    body = tunnel_object(**changes)
    body["metadata"] |= {"uid": UID, "generation": 3, "creationTimestamp": timestamp(NOW - 1000)}
    if deleted:
        body["metadata"]["deletionTimestamp"] = timestamp(NOW)
    return Resource(TablestoreTunnel.from_body(body), status or {})


def recorded(**changes: Any) -> dict[str, Any]:
    """The status of an object whose tunnel and destination exist."""
    status: dict[str, Any] = {
        "tunnel": {"id": TUNNEL_ID, "createIntentTime": timestamp(NOW - 900), "createdByOperator": True},
        "destination": PLACE
        | {
            "createIntentTime": timestamp(NOW - 900),
            "createdByOperator": True,
            "ensuredTime": timestamp(NOW - 890),
        },
    }
    return status | changes


def channel(
    name: str,
    status: ChannelStatus = ChannelStatus.OPEN,
    *,
    kind: ChannelType = ChannelType.STREAM,
    client: str = "01234567-pod-1",
    consumed: float = 0.0,
    rows: int = 0,
) -> ChannelInfo:
    return ChannelInfo(ChannelId(name), kind, status, ClientId(client), int(consumed * 1e9), rows)


def base(name: str, status: ChannelStatus = ChannelStatus.OPEN, **changes: Any) -> ChannelInfo:
    return channel(name, status, kind=ChannelType.BASE, **changes)


def description(
    *channels: ChannelInfo,
    stage: str = Stage.STREAM,
    kind: TunnelType = TunnelType.BaseAndStream,
    stream: StreamConfig | None = None,
    service_time: float | None = NOW,
    **changes: Any,
) -> TunnelDescription:
    info = TunnelInfo(
        tunnel_id=TUNNEL_ID,
        tunnel_name="flights-copy",
        tunnel_type=kind,
        table_name="flights",
        instance_name="demo",
        stream_id="s",
        stage=stage,
        expired=False,
        create_time_ns=int((NOW - 900) * 1e9),
        stream_config=stream,
    )
    return TunnelDescription(replace(info, **changes), channels, 0, service_time)


def report_channel(name: str, **changes: Any) -> WorkerChannel:
    found = WorkerChannel(
        channel_id=name,
        state="OPEN",
        rows=0,
        caught_up=True,
        consumed_up_to=NOW - 1,
        lag_seconds=0,
        finished=False,
        end_reached=False,
        error=None,
    )
    return replace(found, **changes)


def pod(name: str = "pod-1", *channels: WorkerChannel, ready: bool = True, **changes: Any) -> Pod:
    answered = SinkContact(has_answered=True)
    report = WorkerReport(f"01234567-{name}", 120.0, 34, None, False, channels, sink=answered) if ready else None
    found = Pod(name, "Running", ready, deleting=False, ip="10.0.0.1", restarts=0, message="", report=report)
    return replace(found, **changes)


def deployment(replicas: int = 1, /, **status: Any) -> dict[tuple[str, str], Any]:
    found = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, "observedGeneration": 1}
    body = {
        "metadata": {"name": "flights-copy", "generation": 1},
        "spec": {"replicas": replicas},
        "status": found | status,
    }
    return {("Deployment", "flights-copy"): body}


def world(of: Resource | None = None, **changes: Any) -> World:
    """An object that follows its stream with one worker and is caught up; `changes` replace what was observed."""
    found = World(
        of or resource(recorded()),
        NOW,
        source_credentials=KEYS,
        sink_credentials=KEYS,
        source=Table(SCHEMA, stream_retention_seconds=100_000),
        destination=Table(COPY),
        tunnel=Tunnel(description(channel("c1", consumed=NOW - 5), base("b1", ChannelStatus.TERMINATED, rows=100))),
        children=deployment(),
        pods=(pod("pod-1", report_channel("c1")),),
    )
    return replace(found, **changes)


#: The tunnel of `world` once its workers have handed back their channels.
FREED = Tunnel(
    description(
        channel("c1", ChannelStatus.CLOSE, client="", consumed=NOW - 5), base("b1", ChannelStatus.TERMINATED, rows=100)
    )
)


def assessed(of: World) -> Assessment:
    """The assessment of a world."""
    return assess(of, spark_missing_seconds=SETTINGS.spark_missing_seconds)


def planned(of: World) -> Plan:
    """The plan for a world."""
    return plan(of, assessed(of), SETTINGS)


def reported(of: World) -> dict[str, Any]:
    """The status that a pass builds from a world."""
    return build_status(of, assessed(of), planned(of))
