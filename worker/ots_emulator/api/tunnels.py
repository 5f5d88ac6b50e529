"""Tunnel calls (docs/protocol.md 2.2, 4.2, 4.4 to 4.7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from ots_emulator.api.call import Call
from ots_emulator.ledger import BROADWAY, ELIXIR, EMR, ERRORS, JAVA, TERRAFORM, documented, guessed, live, tested
from ots_emulator.pages import Body
from ots_emulator.refusal import client_gone
from ots_emulator.tables.table import Table
from ots_emulator.tunnels.channel import TunnelChannel
from ots_emulator.tunnels.delivery import PageReader, expire_by_clock, opening_token, record_checkpoint
from ots_emulator.tunnels.tunnel import Tunnel
from ots_tunnel.model import Channel, ChannelId, ChannelStatus, ClientId, StreamConfig, Token, TunnelType
from ots_tunnel.protocol import tunnel_pb2 as pb


def create_tunnel(call: Call, request: pb.CreateTunnelRequest) -> bytes:
    """Create a tunnel."""
    wanted = request.tunnel
    config = None
    if wanted.HasField("stream_tunnel_config"):
        given = wanted.stream_tunnel_config
        config = StreamConfig(given.flag == pb.EARLIEST, given.startOffset, given.endOffset)
    tunnel = call.instance.create_tunnel(
        wanted.table_name, wanted.tunnel_name, TunnelType(wanted.tunnel_type), config, call.now
    )
    return pb.CreateTunnelResponse(tunnel_id=tunnel.id).SerializeToString()


def delete_tunnel(call: Call, request: pb.DeleteTunnelRequest) -> bytes:
    """Delete a tunnel; the next call of each client is refused."""
    tunnel = call.instance.find_tunnel(request.table_name, request.tunnel_name, request.tunnel_id)
    del call.instance.tunnels[tunnel.id]
    return b""


def list_tunnel(call: Call, request: pb.ListTunnelRequest) -> bytes:
    """List the tunnels of a table, or of the whole instance if no table is named."""
    instance = call.instance
    tunnels = instance.tunnels_of(request.table_name) if request.table_name else instance.every_tunnel()
    return pb.ListTunnelResponse(tunnels=[_info(call, tunnel) for tunnel in tunnels]).SerializeToString()


def describe_tunnel(call: Call, request: pb.DescribeTunnelRequest) -> bytes:
    """Describe a tunnel; it has no channels during its first stage."""
    tunnel = call.instance.find_tunnel(request.table_name, request.tunnel_name, request.tunnel_id)
    tunnel.expire_clients(call.now)
    channels = tunnel.channels.values() if tunnel.is_ready(call.now) else ()
    return pb.DescribeTunnelResponse(
        tunnel=_info(call, tunnel),
        channels=[_channel_info(channel) for channel in channels],
        tunnel_rpo=tunnel.consume_point_ns(),
    ).SerializeToString()


def _info(call: Call, tunnel: Tunnel) -> pb.TunnelInfo:
    table = call.instance.tables.get(tunnel.table_name)
    if table is not None:
        expire_by_clock(tunnel, table, call.settings, call.now_us)
    config = tunnel.config
    log = table.log if table is not None else None
    return pb.TunnelInfo(
        tunnel_id=tunnel.id,
        tunnel_type=tunnel.type.name,
        table_name=tunnel.table_name,
        instance_name=call.instance.name,
        stream_id=log.stream_id if log is not None and config is not None else "",
        stage=tunnel.stage(call.now),
        expired=tunnel.expired,
        tunnel_name=tunnel.name,
        public=True,
        stream_tunnel_config=None
        if config is None
        else pb.StreamTunnelConfig(
            flag=pb.EARLIEST if config.earliest else pb.LATEST,
            startOffset=config.start_offset_ns,
            endOffset=config.end_offset_ns,
        ),
        create_time=tunnel.created_ns,
    )


def _channel_info(channel: TunnelChannel) -> pb.ChannelInfo:
    return pb.ChannelInfo(
        channel_id=channel.id,
        channel_type=channel.type,
        channel_status=channel.shown_status.name,
        client_id=channel.owner or "",
        channel_rpo=channel.consume_point_ns,
        channel_count=channel.rows,
    )


def connect(call: Call, request: pb.ConnectRequest) -> bytes:
    """Register a client."""
    config = request.client_config
    timeout = float(config.timeout) if config.timeout > 0 else call.settings.client_timeout
    tunnel = call.instance.tunnel(request.tunnel_id)
    expire_by_clock(tunnel, _table(call, tunnel), call.settings, call.now_us)
    client = tunnel.connect(config.client_tag, timeout, call.now)
    return pb.ConnectResponse(client_id=client.id).SerializeToString()


def heartbeat(call: Call, request: pb.HeartbeatRequest) -> bytes:
    """Accept a client's report and return the channels it holds."""
    tunnel = call.instance.tunnel(request.tunnel_id)
    reports = [
        Channel(ChannelId(channel.channel_id), channel.version, ChannelStatus(channel.status))
        for channel in request.channels
    ]
    held = tunnel.heartbeat(request.client_id, reports, call.now, call.settings.assign_interval)
    return pb.HeartbeatResponse(
        channels=[
            pb.Channel(
                channel_id=channel.channel_id,
                version=channel.version,
                status=channel.status.name,
            )
            for channel in held
        ]
    ).SerializeToString()


def shutdown(call: Call, request: pb.ShutdownRequest) -> bytes:
    """Deregister a client."""
    call.instance.tunnel(request.tunnel_id).shutdown(request.client_id)
    return b""


def get_checkpoint(call: Call, request: pb.GetCheckpointRequest) -> bytes:
    """Return the cursor of a channel."""
    tunnel, channel = _channel(call, request)
    token = opening_token(channel, _table(call, tunnel), call.settings, call.now_us)
    return pb.GetCheckpointResponse(checkpoint=token, sequence_number=channel.sequence).SerializeToString()


def read_records(call: Call, request: pb.ReadRecordsRequest) -> Body:
    """Return the page at a token."""
    tunnel, channel = _channel(call, request)
    tunnel.check_alive()
    table = _table(call, tunnel)
    reader = PageReader(tunnel, channel, table, call.settings, call.instance.pages, call.now_us)
    return reader.read(Token(request.token))


def checkpoint(call: Call, request: pb.CheckpointRequest) -> bytes:
    """Store the cursor of a channel; the time in its token moves the consume point."""
    tunnel, channel = _channel(call, request)
    token = Token(request.checkpoint)
    table = _table(call, tunnel)
    rows, point_ns = channel.rows, channel.consume_point_ns
    # The token is read first: a malformed one must not use up a sequence number.
    record_checkpoint(tunnel, channel, token, table, call.now_us)
    try:
        tunnel.checkpoint(channel, token, request.sequence_number)
    except Exception:
        channel.rows, channel.consume_point_ns = rows, point_ns
        raise
    return b""


def get_rpo(call: Call, request: pb.GetRpoRequest) -> bytes:
    """Return consume points as JSON with the field names of the vendor's Go client, in ns (docs/protocol.md 2.5)."""
    tunnel = call.instance.tunnel(request.tunnel_id)
    channels: dict[str, dict[str, dict[str, object]]] = {}
    for channel in tunnel.channels.values():
        channels.setdefault(channel.type, {})[channel.id] = {"ChannelTyp": channel.type, **_rpo([channel])}
    totals = {
        kind: _rpo([channel for channel in tunnel.channels.values() if channel.type == kind]) for kind in channels
    }
    return pb.GetRpoResponse(
        rpo_infos=json.dumps(channels).encode(),
        tunnel_rpo_infos=json.dumps(totals).encode(),
        tunnel_id=tunnel.id,
    ).SerializeToString()


def _rpo(channels: list[TunnelChannel]) -> dict[str, object]:
    point_ns = min(channel.consume_point_ns for channel in channels)
    slowest = min(channels, key=lambda channel: channel.status)
    return {
        "Status": slowest.shown_status.name,
        "TotalCount": sum(channel.rows for channel in channels),
        "AccessTime": max(channel.consume_point_ns for channel in channels),
        "RpoTime": point_ns,
    }


def schedule(call: Call, request: pb.ScheduleRequest) -> bytes:
    """Suspend, resume or end channels by hand; versions are ignored (docs/protocol.md 2.6)."""
    tunnel = call.instance.tunnel(request.tunnel_id)
    channels = [(tunnel.channel(wanted.channel_id), wanted.status) for wanted in request.channels]
    for channel, status in channels:
        if status == pb.CLOSING:
            tunnel.suspend(channel)
        elif status == pb.OPEN:
            tunnel.resume(channel)
        elif status == pb.TERMINATED:
            tunnel.terminate(channel)
    return b""


def _channel(
    call: Call, request: pb.GetCheckpointRequest | pb.ReadRecordsRequest | pb.CheckpointRequest
) -> tuple[Tunnel, TunnelChannel]:
    tunnel, channel = call.instance.channel(request.tunnel_id, request.channel_id)
    if call.settings.strict_owner and channel.owner != ClientId(request.client_id):
        raise client_gone()
    return tunnel, channel


def _table(call: Call, tunnel: Tunnel) -> Table:
    return call.instance.table(tunnel.table_name)


HANDLERS: Final[Mapping[str, Callable[[Call, Any], bytes | Body]]] = {
    "CreateTunnel": create_tunnel,
    "DeleteTunnel": delete_tunnel,
    "ListTunnel": list_tunnel,
    "DescribeTunnel": describe_tunnel,
    "Connect": connect,
    "Heartbeat": heartbeat,
    "Shutdown": shutdown,
    "GetCheckpoint": get_checkpoint,
    "ReadRecords": read_records,
    "Checkpoint": checkpoint,
    "GetRpo": get_rpo,
    "Schedule": schedule,
}

LEDGER: Final = (
    tested(
        "CreateTunnel",
        "start and end times are echoed, an end before the start is refused",
        JAVA(
            "TestBackFillTunnel.testCreateTunnelWithRangeBackFill",
            "TestBackFillTunnel.testCreateTunnelWithInvalidBackFill",
        ),
    ),
    guessed("CreateTunnel", "an end of 2^63 ns or later is refused", "consume points are signed, offsets are not"),
    documented("CreateTunnel", "it switches the stream on, with 168 hours; a taken name is 409"),
    documented("CreateTunnel", "a start must lie within the retention, five minutes from its beginning or later"),
    documented("DeleteTunnel", "the tunnel is gone"),
    guessed("DeleteTunnel", "at once, also for its clients, whose next call is refused", "no source says when"),
    tested("DeleteTunnel", "a missing tunnel is OTSParameterInvalid", JAVA("TestTunnelConsumer.setUp")),
    guessed("DeleteTunnel", "an id takes precedence over the name", "as in DescribeTunnel"),
    guessed("DescribeTunnel", "a missing tunnel is OTSParameterInvalid", "as in DeleteTunnel"),
    guessed("DescribeTunnel, DeleteTunnel", "without id and table no tunnel is found", "no source has such a call"),
    documented("ListTunnel", "the tunnels of a table"),
    guessed("ListTunnel", "without a table those of the instance", "no source has such a call"),
    live(
        "DescribeTunnel",
        "forms of ids of stream channels and streams",
        ELIXIR("test/tunnel/utils_test.exs stream_token? with content v2"),
    ),
    documented("DescribeTunnel", "ids of base channels begin with `BaseData_`", "the Go SDK's code"),
    tested(
        "DescribeTunnel",
        "no channels in the first stage, then base and stream channels",
        ELIXIR("test/tunnel/client_test.exs describe tunnel"),
        TERRAFORM("alicloud/resource_alicloud_ots_tunnel_test.go TestAccAlicloudOtsTunnel_basic"),
    ),
    guessed("DescribeTunnel", "the first stage lasts 50 ms (`init_delay`)", "the service's takes seconds"),
    guessed("DescribeTunnel", "a suspended channel is CLOSING", "no recording has one"),
    guessed(
        "DescribeTunnel", "the consume point of a tunnel is that of its slowest channel", "no recording compares them"
    ),
    guessed(
        "ReadRecords, Connect, Heartbeat",
        "an expired tunnel refuses these calls with OTSTunnelExpired, but neither GetCheckpoint nor Checkpoint",
        "the code is known, not which calls answer with it",
    ),
    guessed("Connect", "the client id contains the tag", "no public source shows one"),
    guessed("Connect", "without a timeout a client has 300 s", "the SDKs' default"),
    live(
        "Heartbeat",
        "a client without heartbeats is OTSResourceGone, `[tunnelservice] client not exist`",
        BROADWAY("lib/broadway_ots/worker.ex err_client_not_exist"),
    ),
    documented("Heartbeat", "the channels of a client that is gone go to others"),
    guessed("Heartbeat", "channels are shared out evenly, in few moves", "the service's algorithm is not published"),
    guessed(
        "Heartbeat",
        "stream channels wait for all base channels, and children for all their parents",
        "documented is the order of the phases and of records, not how channels are held back",
    ),
    guessed(
        "Heartbeat",
        "of two reports with one version the client's counts where it ends the channel; others need a higher one",
        "no recording has such reports",
    ),
    guessed("Heartbeat", "an answer has OPEN and CLOSING channels only", "no source says that it has no others"),
    documented("Shutdown", "the client's channels go to others"),
    guessed(
        "Shutdown", "they are free at once, and an unknown client is a success", "no source has the time or such a call"
    ),
    tested(
        "GetCheckpoint, Checkpoint",
        "a fresh channel has a token; a stored token and number come back, also `finished`",
        ELIXIR("test/tunnel/client_test.exs connect and heartbeat tunnel"),
    ),
    guessed("GetCheckpoint", "a fresh channel has the sequence number 0", "clients go on from whatever it is"),
    tested(
        "ReadRecords",
        "without more to come the next page is empty; ownership is not required",
        JAVA("TestTableGroup.testTableGroup"),
    ),
    tested(
        "ReadRecords",
        "the base phase delivers what the scan finds, not a snapshot",
        ELIXIR("test/tunnel/client_test.exs connect and heartbeat tunnel"),
    ),
    guessed(
        "ReadRecords",
        "1,000 records or 1 MiB for each answer (`page_rows`, `page_bytes`)",
        "sizes were seen, limits were not",
    ),
    guessed(
        "ReadRecords", "a read at the log's end moves the consume point (`idle_advance`)", "not known for idle tables"
    ),
    guessed(
        "ReadRecords",
        "records beyond the retention expire the tunnel (`after_retention`)",
        "documented, but not always so",
    ),
    guessed(
        "ReadRecords",
        "a token whose records are gone is refused alone while those of the stored cursor are left",
        "no source has such a call",
    ),
    live(
        "ReadRecords",
        "a read of trimmed records is OTSTunnelServerUnavailable (`after_retention` LatestAtOpen)",
        ELIXIR("lib/ex_aliyun_ots/tunnel/agent.ex stream_channel_expired?"),
    ),
    documented("ReadRecords", "the words of this error, apart from the id of a call behind them", ERRORS),
    guessed(
        "ReadRecords",
        "in the other ways of `after_retention` the read goes on from the oldest or the latest record",
        "that a tunnel may go on from the oldest record is documented, not when it does",
    ),
    guessed(
        "ReadRecords, Checkpoint",
        "a token of another channel is OTSParameterInvalid, in these words",
        "no source has such a call; that clients must not do it is documented",
    ),
    guessed(
        "GetCheckpoint, ReadRecords",
        "what a token holds beside the fields that clients read: the iterator and the next key",
        "real ones are opaque",
    ),
    documented("Checkpoint", "a number that is not greater than the stored one is OTSSequenceNumberNotMatch"),
    guessed("Checkpoint", "a number that leaves some out is accepted and stored", "no source says so"),
    live("Checkpoint", "the number 0 is accepted whatever the next one is", EMR("TableStoreSource.commit")),
    guessed("Checkpoint", "the number 0 leaves the stored number as it is", "no recording reads it afterwards"),
    documented("GetRpo, Schedule", "form of the answer", "the Go SDK's code"),
    guessed("GetRpo, Schedule", "what is in it", "no program that uses it is public"),
)
