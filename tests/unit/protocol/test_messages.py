"""Wire messages to the vocabulary and back."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.model import (
    Channel,
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    Stage,
    StreamConfig,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.messages import (
    channel_info_from_wire,
    channels_from_wire,
    channels_to_wire,
    checkpoint_from_wire,
    create_tunnel_request,
    description_from_wire,
    stream_config_to_wire,
    tunnel_info_from_wire,
)

INFO = TunnelInfo(
    tunnel_id=TunnelId("t"),
    tunnel_name="copy",
    tunnel_type=TunnelType.BaseAndStream,
    table_name="orders",
    instance_name="shop",
    stream_id="orders_1",
    stage=Stage.BASE,
    expired=True,
    create_time_ns=1700000000123456789,
    stream_config=StreamConfig(True, 1, 2),
)
CHANNEL = ChannelInfo(
    channel_id=ChannelId("BaseData_0"),
    channel_type=ChannelType.BASE,
    status=ChannelStatus.WAIT,
    client_id=ClientId(""),
    consume_point_ns=5,
    rows=7,
)


def tunnel_wire() -> tunnel_pb2.TunnelInfo:
    """`INFO` as the service sends it."""
    return tunnel_pb2.TunnelInfo(
        tunnel_id="t",
        tunnel_type="BaseAndStream",
        table_name="orders",
        instance_name="shop",
        stream_id="orders_1",
        stage="ProcessBaseData",
        expired=True,
        tunnel_name="copy",
        create_time=1700000000123456789,
        stream_tunnel_config=tunnel_pb2.StreamTunnelConfig(flag=tunnel_pb2.EARLIEST, startOffset=1, endOffset=2),
    )


def channel_wire() -> tunnel_pb2.ChannelInfo:
    """`CHANNEL` as the service sends it."""
    return tunnel_pb2.ChannelInfo(
        channel_id="BaseData_0",
        channel_type="BaseData",
        channel_status="WAIT",
        client_id="",
        channel_rpo=5,
        channel_count=7,
    )


def test_a_description_is_read_in_full() -> None:
    wire = tunnel_pb2.DescribeTunnelResponse(tunnel=tunnel_wire(), channels=[channel_wire()], tunnel_rpo=9)
    received = tunnel_pb2.DescribeTunnelResponse.FromString(wire.SerializeToString())

    assert description_from_wire(received) == TunnelDescription(INFO, (CHANNEL,), 9)


def test_tunnel_without_stream_config_has_none() -> None:
    wire = tunnel_wire()
    wire.ClearField("stream_tunnel_config")

    assert tunnel_info_from_wire(wire).stream_config is None


def test_channel_type_printed_as_base_is_base_data() -> None:
    wire = channel_wire()
    wire.channel_type = "Base"

    assert channel_info_from_wire(wire).channel_type is ChannelType.BASE


@pytest.mark.parametrize("field", ["channel_type", "channel_status"])
@pytest.mark.parametrize("text", ["", "Other"])
def test_unknown_word_for_a_channel_is_refused(field: str, text: str) -> None:
    wire = channel_wire()
    setattr(wire, field, text)

    with pytest.raises(CodecError, match="known are"):
        channel_info_from_wire(wire)


def test_unknown_tunnel_type_is_refused() -> None:
    wire = tunnel_wire()
    wire.tunnel_type = "Other"

    with pytest.raises(CodecError, match="known are BaseData, Stream, BaseAndStream"):
        tunnel_info_from_wire(wire)


@pytest.mark.parametrize("status", [status for status in ChannelStatus if status is not ChannelStatus.WAIT])
def test_channel_survives_a_heartbeat(status: ChannelStatus) -> None:
    channel = Channel(ChannelId("c"), 3, status)

    assert channels_from_wire(channels_to_wire([channel])) == (channel,)


def test_waiting_channel_has_no_wire_value() -> None:
    with pytest.raises(CodecError, match="WAIT"):
        channels_to_wire([Channel(ChannelId("c"), 3, ChannelStatus.WAIT)])


def test_a_checkpoint_is_read() -> None:
    wire = tunnel_pb2.GetCheckpointResponse(checkpoint="token", sequence_number=4)

    assert checkpoint_from_wire(wire) == Checkpoint(Token("token"), 4)


@pytest.mark.parametrize(
    ("config", "flag", "start", "end"),
    [
        (StreamConfig(), tunnel_pb2.LATEST, False, False),
        (StreamConfig(earliest=True), tunnel_pb2.EARLIEST, False, False),
        (StreamConfig(earliest=True, end_offset_ns=5), tunnel_pb2.EARLIEST, False, True),
        (StreamConfig(start_offset_ns=5, end_offset_ns=6), None, True, True),
    ],
)
def test_flag_stays_out_where_a_start_is_given(config: StreamConfig, flag: int | None, start: bool, end: bool) -> None:
    wire = stream_config_to_wire(config)

    assert (wire.flag if wire.HasField("flag") else None) == flag
    assert (wire.HasField("startOffset"), wire.HasField("endOffset")) == (start, end)


def test_create_request_names_the_tunnel() -> None:
    request = create_tunnel_request("orders", "copy", TunnelType.Stream, StreamConfig(earliest=True))

    assert (request.tunnel.table_name, request.tunnel.tunnel_name) == ("orders", "copy")
    assert request.tunnel.tunnel_type == tunnel_pb2.Stream
    assert request.tunnel.stream_tunnel_config.flag == tunnel_pb2.EARLIEST
    base = create_tunnel_request("orders", "copy", TunnelType.BaseData)
    assert not base.tunnel.HasField("stream_tunnel_config")
