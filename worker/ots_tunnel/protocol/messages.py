"""Conversion between the wire messages of the Tunnel Service and the vocabulary of `model`.

Wire names end here: rpo becomes consume point, the strings and numbers of a status become `ChannelStatus`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.errors import CodecError
from ots_tunnel.model import (
    Channel,
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    StreamConfig,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.protocol import tunnel_pb2


def stream_config_to_wire(config: StreamConfig) -> tunnel_pb2.StreamTunnelConfig:
    """The part of the stream to deliver; the flag is omitted where a start is given, as in the vendor's clients."""
    message = tunnel_pb2.StreamTunnelConfig()
    if config.start_offset_ns:
        message.startOffset = config.start_offset_ns
    else:
        message.flag = tunnel_pb2.EARLIEST if config.earliest else tunnel_pb2.LATEST
    if config.end_offset_ns:
        message.endOffset = config.end_offset_ns
    return message


def stream_config_from_wire(message: tunnel_pb2.StreamTunnelConfig) -> StreamConfig:
    """The part of the stream that a tunnel delivers; absent fields mean latest, 0, 0."""
    return StreamConfig(message.flag == tunnel_pb2.EARLIEST, message.startOffset, message.endOffset)


def create_tunnel_request(
    table_name: str, tunnel_name: str, tunnel_type: TunnelType, stream: StreamConfig | None = None
) -> tunnel_pb2.CreateTunnelRequest:
    """Request for a tunnel; the service ignores `stream` for a tunnel of base data only."""
    tunnel = tunnel_pb2.Tunnel(
        table_name=table_name,
        tunnel_name=tunnel_name,
        tunnel_type=tunnel_type.name,
        stream_tunnel_config=None if stream is None else stream_config_to_wire(stream),
    )
    return tunnel_pb2.CreateTunnelRequest(tunnel=tunnel)


def tunnel_info_from_wire(message: tunnel_pb2.TunnelInfo) -> TunnelInfo:
    """The service's description of a tunnel.

    Raises:
        CodecError: an unknown tunnel type.
    """
    try:
        tunnel_type = TunnelType[message.tunnel_type]
    except KeyError:
        raise CodecError(
            f"tunnel type {message.tunnel_type!r}, known are {', '.join(TunnelType.__members__)}"
        ) from None
    has_config = message.HasField("stream_tunnel_config")
    return TunnelInfo(
        tunnel_id=TunnelId(message.tunnel_id),
        tunnel_name=message.tunnel_name,
        tunnel_type=tunnel_type,
        table_name=message.table_name,
        instance_name=message.instance_name,
        stream_id=message.stream_id,
        stage=message.stage,
        expired=message.expired,
        create_time_ns=message.create_time,
        stream_config=stream_config_from_wire(message.stream_tunnel_config) if has_config else None,
    )


def channel_info_from_wire(message: tunnel_pb2.ChannelInfo) -> ChannelInfo:
    """The service's description of a channel; ``Base`` counts as ``BaseData``, as some vendor documents print it.

    Raises:
        CodecError: an unknown type or status.
    """
    return ChannelInfo(
        channel_id=ChannelId(message.channel_id),
        channel_type=_channel_type(message.channel_type),
        status=_channel_status(message.channel_status),
        client_id=ClientId(message.client_id),
        consume_point_ns=message.channel_rpo,
        rows=message.channel_count,
    )


def _channel_type(text: str) -> ChannelType:
    try:
        return ChannelType.BASE if text == "Base" else ChannelType(text)
    except ValueError:
        raise CodecError(f"channel type {text!r}, known are {', '.join(ChannelType)}") from None


def _channel_status(text: str) -> ChannelStatus:
    try:
        return ChannelStatus[text]
    except KeyError:
        raise CodecError(f"channel status {text!r}, known are {', '.join(ChannelStatus.__members__)}") from None


def description_from_wire(
    message: tunnel_pb2.DescribeTunnelResponse, service_time: float | None = None
) -> TunnelDescription:
    """A tunnel with its channels; `service_time` is that of the answer.

    Raises:
        CodecError: an unknown type or status.
    """
    return TunnelDescription(
        tunnel=tunnel_info_from_wire(message.tunnel),
        channels=tuple(channel_info_from_wire(channel) for channel in message.channels),
        consume_point_ns=message.tunnel_rpo,
        service_time=service_time,
    )


def channels_from_wire(messages: Iterable[tunnel_pb2.Channel]) -> tuple[Channel, ...]:
    """The channels of a heartbeat."""
    return tuple(
        Channel(ChannelId(message.channel_id), message.version, ChannelStatus(message.status)) for message in messages
    )


def channels_to_wire(channels: Iterable[Channel]) -> list[tunnel_pb2.Channel]:
    """The channels of a heartbeat.

    Raises:
        CodecError: a channel in WAIT, which has no wire value.
    """
    return [_channel_to_wire(channel) for channel in channels]


def _channel_to_wire(channel: Channel) -> tunnel_pb2.Channel:
    if channel.status is ChannelStatus.WAIT:
        raise CodecError(f"channel {channel.channel_id} is in WAIT, which has no wire value")
    return tunnel_pb2.Channel(channel_id=channel.channel_id, version=channel.version, status=channel.status.name)


def checkpoint_from_wire(message: tunnel_pb2.GetCheckpointResponse) -> Checkpoint:
    """The cursor that the service stores."""
    return Checkpoint(Token(message.checkpoint), message.sequence_number)
