"""A record as a Kafka message; pure.

key      the values of the primary key in the table's order as a compact JSON array, such as ``["user-1",42]``; bytes
         are ``{"base64":"..."}``. Equal keys have equal bytes; keys that differ only by type have different bytes
value    the record's JSON form, the same as in every sink that writes text
headers  origin, action and sequence, for consumers that filter without parsing values
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ots_tunnel.model import Action, ChannelId, ChannelType
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_bytes import PORTION_BYTES, heads_of, json_bytes
from ots_tunnel.sinks.json_record import json_key, json_text

Headers = list[tuple[str, bytes]]
SEQUENCE_HEADER = "ots-sequence"


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a worker's records."""

    instance: str
    table: str
    tunnel: str


#: Key, value and headers of one message. No class: the compiled twin makes them by the million.
Message = tuple[bytes, bytes, Headers]


class Messages:
    """Makes the messages of one channel.

    The compiled twin makes several in one call, and leaves to the reference, `message_of`, what `json_bytes` leaves to
    its own.

    Args:
        origin: names table and tunnel in the headers.
    """

    def __init__(self, origin: Origin, channel_id: ChannelId, channel_type: ChannelType) -> None:
        self._channel_id = channel_id
        self._heads = heads_of(channel_id)
        #: The headers of each action, as far as they are the same for all of its records.
        self._headers: dict[Action, Headers] = {
            action: [
                ("content-type", b"application/json"),
                ("ots-instance", origin.instance.encode()),
                ("ots-table", origin.table.encode()),
                ("ots-tunnel", origin.tunnel.encode()),
                ("ots-channel-type", channel_type.value.encode()),
                ("ots-action", action.name.encode()),
            ]
            for action in Action
        }

    def of(self, records: list[Record]) -> Iterator[list[Message]]:
        """The messages of records, about `PORTION_BYTES` at a time.

        Raises:
            CodecError: a record is malformed; the messages before it were given.
        """
        at = 0
        while at < len(records):
            made: list[Message] = []
            begun = at
            if native is not None:
                made, at = native.messages(records, at, self._heads, self._headers, SEQUENCE_HEADER, PORTION_BYTES)
            if at == begun:
                made, at = [self.message_of(records[at])], at + 1
            yield made

    def message_of(self, record: Record) -> Message:
        """The message of one record.

        Raises:
            CodecError: the record is malformed.
        """
        sequence, headers = record.sequence, self._headers[record.action]
        if sequence is not None:
            # epoch.microseconds.index: commit order when compared number by number; existing rows have none
            text = f"{sequence.epoch}.{sequence.timestamp_us}.{sequence.row_index}"
            headers = [*headers, (SEQUENCE_HEADER, text.encode())]
        key = json_text(list(json_key(record).values())).encode()
        return key, json_bytes(record, self._channel_id), headers
