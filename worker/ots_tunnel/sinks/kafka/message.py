"""A record as a Kafka message; pure.

Key: the values of the primary key in the table's order as a compact JSON array, such as ``["user-1",42]``; bytes are
``{"base64":"..."}``. Equal keys have equal bytes, different ones differ also where only the type does.
Value: the record's JSON form, the same as in every sink that writes text. Headers: where it comes from, for consumers
that choose without reading values.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_record import json_form

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the records of a worker come from."""

    instance: str
    table: str
    tunnel: str


@dataclass(frozen=True, slots=True)
class Message:
    """What a producer takes."""

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
        form = json_form(record, self._channel_id)
        headers = [*self._headers, ("ots-action", record.action.name.encode())]
        if form["sequence"] is not None:
            # epoch.microseconds.index: compares, number by number, in commit order; records of base data have none
            headers.append(("ots-sequence", ".".join(map(str, form["sequence"])).encode()))
        return Message(_compact(list(form["key"].values())), _compact(form), headers)


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
