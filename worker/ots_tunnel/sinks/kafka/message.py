"""A record as a Kafka message; pure.

key      the values of the primary key in the table's order as a compact JSON array, such as ``["user-1",42]``; bytes
         are ``{"base64":"..."}``. Equal keys have equal bytes; keys that differ only by type have different bytes
value    the record's JSON form, the same as in every sink that writes text
headers  origin, action and sequence, for consumers that filter without parsing values
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_bytes import json_bytes
from ots_tunnel.sinks.json_record import json_key, json_text

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a worker's records."""

    instance: str
    table: str
    tunnel: str


@dataclass(frozen=True, slots=True)
class Message:
    """Key, value and headers of one message."""

    key: bytes = field(repr=False)
    value: bytes = field(repr=False)
    headers: Headers = field(repr=False)


class Messages:
    """Makes the messages of one channel.

    Args:
        origin: names table and tunnel in the headers.
    """

    def __init__(self, origin: Origin, channel_id: ChannelId, channel_type: ChannelType) -> None:
        self._channel_id = channel_id
        self._headers: Headers = [
            ("content-type", b"application/json"),
            ("ots-instance", origin.instance.encode()),
            ("ots-table", origin.table.encode()),
            ("ots-tunnel", origin.tunnel.encode()),
            ("ots-channel-type", channel_type.value.encode()),
        ]

    def of(self, record: Record) -> Message:
        """The message of a record.

        Raises:
            CodecError: the record is malformed.
        """
        sequence = record.sequence
        headers = [*self._headers, ("ots-action", record.action.name.encode())]
        if sequence is not None:
            # epoch.microseconds.index: commit order when compared number by number; existing rows have none
            text = f"{sequence.epoch}.{sequence.timestamp_us}.{sequence.row_index}"
            headers.append(("ots-sequence", text.encode()))
        key = json_text(list(json_key(record).values())).encode()
        return Message(key, json_bytes(record, self._channel_id), headers)
