"""The vocabulary: identifiers, cells, and the service's descriptions of tunnels and channels.

Values only, without behaviour beyond derivations. Times are float seconds since 1970 unless the name has a unit; cell
versions are milliseconds, sequence times microseconds (docs/protocol.md 2.2).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

TunnelId = NewType("TunnelId", str)
ClientId = NewType("ClientId", str)
ChannelId = NewType("ChannelId", str)
Token = NewType("Token", str)

#: Token and checkpoint of a channel that was read to its end (docs/protocol.md 2.4).
FINISHED = Token("finished")


class Action(enum.IntEnum):
    """Kind of change of one record; numbers are the wire's (docs/protocol.md 2.1)."""

    PUT = 1
    UPDATE = 2
    DELETE = 3


class CellOp(enum.IntEnum):
    """Change of one cell; numbers are PlainBuffer's cell types, and a put has none."""

    PUT = 0
    DELETE_ALL_VERSIONS = 1
    DELETE_ONE_VERSION = 3
    INCREMENT = 4


class Marker(enum.Enum):
    """Key values that are not data: bounds of ranges, and the placeholder of an auto-increment key."""

    INF_MIN = 0x09
    INF_MAX = 0x0A
    AUTO_INCREMENT = 0x0B


Value = int | float | bool | str | bytes
KeyValue = int | str | bytes | Marker
#: Key columns in the table's order: ((name, value), ...).
PrimaryKey = tuple[tuple[str, KeyValue], ...]


class KeyType(enum.IntEnum):
    """Type of a primary key column; numbers are the wire's (docs/data-plane.md 2.1)."""

    INTEGER = 1
    STRING = 2
    BINARY = 3


_KEY_TYPES: Mapping[type, KeyType] = {int: KeyType.INTEGER, str: KeyType.STRING, bytes: KeyType.BINARY}


def key_type_name(value: KeyValue) -> str:
    """The type of a value of a key, for messages; of what no row has in its key, such as a marker, its own name."""
    kind = _KEY_TYPES.get(type(value))
    return type(value).__name__ if kind is None else kind.name


class TunnelType(enum.IntEnum):
    """Data that a tunnel delivers; numbers are the wire's, names are the strings of TunnelInfo."""

    BaseData = 1
    Stream = 2
    BaseAndStream = 3


class ChannelType(enum.StrEnum):
    """A slice of the base data, or one partition of the stream."""

    BASE = "BaseData"
    STREAM = "Stream"


class ChannelStatus(enum.IntEnum):
    """Status of a channel; WAIT has no wire value (docs/protocol.md 2.1)."""

    WAIT = 0
    OPEN = 1
    CLOSING = 2
    CLOSE = 3
    TERMINATED = 4


class Stage(enum.StrEnum):
    """Phase of a tunnel (docs/protocol.md 2.3)."""

    INIT = "InitBaseDataAndStreamShard"
    BASE = "ProcessBaseData"
    STREAM = "ProcessStream"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of a table's primary key."""

    name: str
    type: KeyType
    auto_increment: bool = False


@dataclass(frozen=True, slots=True)
class Credentials:
    """An AccessKey pair, with a token if it is temporary. Secrets are never printed."""

    access_key_id: str
    access_key_secret: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, order=True)
class SequenceInfo:
    """Position of a stream record; compares in commit order (docs/protocol.md 3.3)."""

    epoch: int
    timestamp_us: int
    row_index: int


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """Part of the stream that a tunnel delivers; offsets are Unix nanoseconds, 0 is unset."""

    earliest: bool = False
    start_offset_ns: int = 0
    end_offset_ns: int = 0


@dataclass(frozen=True, slots=True)
class TunnelInfo:
    """The service's description of one tunnel."""

    tunnel_id: TunnelId
    tunnel_name: str
    tunnel_type: TunnelType
    table_name: str
    instance_name: str
    stream_id: str
    stage: str
    expired: bool
    create_time_ns: int
    stream_config: StreamConfig | None


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """The service's description of one channel; `consume_point_ns` 0 means never consumed."""

    channel_id: ChannelId
    channel_type: ChannelType
    status: ChannelStatus
    client_id: ClientId
    consume_point_ns: int
    rows: int


@dataclass(frozen=True, slots=True)
class TunnelDescription:
    """A tunnel with its channels; `consume_point_ns` is that of the slowest stream channel.

    `service_time` is the service's clock at the answer, Unix seconds; None if unknown.
    """

    tunnel: TunnelInfo
    channels: tuple[ChannelInfo, ...]
    consume_point_ns: int
    service_time: float | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as heartbeats carry it: immutable, replaced as a whole (docs/protocol.md 6.1, G5)."""

    channel_id: ChannelId
    version: int
    status: ChannelStatus


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The cursor that the service stores for one channel; its token may hold a primary key and is not printed."""

    token: Token = field(repr=False)
    sequence_number: int
