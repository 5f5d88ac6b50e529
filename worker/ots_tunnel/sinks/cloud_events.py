"""Records as CloudEvents 1.0 in JSON batches, signed as Standard Webhooks describes; pure.

A replay repeats the id of an event, so that a receiver recognizes repeated events by source and id. Equal ids are of
equal events. Channels of two tunnels of a table may have the same names, and two tunnels may deliver other columns, or
an existing row once more, which an event between them has deleted: so an id begins with its producer, and then its
channel. That of a change goes on with its sequence. An existing row has none, and is read again with what it has by
then: it goes on with a hash of the whole row.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from ots_tunnel.config import ColumnsConfig
from ots_tunnel.model import Action, ChannelId
from ots_tunnel.protocol.plainbuffer.compiled import native
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_bytes import PORTION_BYTES, heads_of, json_bytes
from ots_tunnel.sinks.json_record import json_key, json_text
from ots_tunnel.sinks.slices import SLICE_BYTES, SLICE_RECORDS

CONTENT_TYPE = "application/cloudevents-batch+json; charset=UTF-8"
_TYPES = {action: f"dev.ots-tunnel.row.{action.name.lower()}" for action in Action}

#: Begins a secret in the form of Standard Webhooks; base64 follows.
PREFIX = b"whsec_"


@dataclass(slots=True, eq=False)
class Event:
    """One record as the bytes of its event; not frozen, which would cost as much as its bytes."""

    key: bytes = field(repr=False)
    body: bytes = field(repr=False)
    record: Record = field(repr=False)
    #: Bytes in a request, with its comma.
    size: int


class Events:
    """Makes the events of one channel.

    The compiled twin makes those of a slice in one call, and leaves to the reference, `event_of`, what `json_bytes`
    leaves to its own.

    Args:
        source: names the table, such as ``ots://instance/table``.
        producer: see `producer_of`.
    """

    def __init__(self, channel_id: ChannelId, source: str, producer: str) -> None:
        self._channel_id = channel_id
        self._source = source
        self._producer = producer
        self._heads = _heads(channel_id, source, producer)

    def of(self, records: list[Record], first: int) -> list[Event]:
        """The events of a slice of records, which begins at a place.

        Raises:
            CodecError: a record is malformed.
        """
        rows = SLICE_RECORDS
        if native is not None:
            end = first + rows
            bodies, end = native.cloud_events(records, first, end, self._heads, _row_identity, PORTION_BYTES)
            if bodies:
                made = zip(records[first:end], bodies, strict=True)
                return [Event(record.key, body, record, len(body) + 1) for record, body in made]
            rows = 1  # the reference makes this one, and the twin may go on behind it
        events: list[Event] = []
        size = 0
        for record in records[first : first + rows]:
            body = event_of(record, self._channel_id, self._source, self._producer)
            events.append(Event(record.key, body, record, len(body) + 1))
            size += record.size
            if size >= SLICE_BYTES:
                break
        return events


def producer_of(tunnel_id: str, columns: ColumnsConfig | None) -> str:
    """What the ids of events begin with: the tunnel, and a digest of the settings that change what is in them."""
    if columns is None:
        return tunnel_id
    renamed = {(name, new) for name, new in columns.rename.items() if name != new}
    settings = [sorted(each) for each in (set(columns.include), set(columns.exclude), renamed)]
    if not any(settings):
        return tunnel_id
    return f"{tunnel_id}-{hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:8]}"


def event_of(record: Record, channel_id: ChannelId, source: str, producer: str) -> bytes:
    """The event of a record.

    Args:
        source: names the table, such as ``ots://instance/table``.
        producer: see `producer_of`.

    Raises:
        CodecError: the record is malformed.
    """
    sequence = record.sequence
    event = {
        "specversion": "1.0",
        "id": f"{producer}:{channel_id}:{_identity(record)}",
        "source": source,
        "type": _TYPES[record.action],
        "subject": json_text(json_key(record)),
        "datacontenttype": "application/json",
    }
    body = [json_text(event).encode().removesuffix(b"}"), b',"data":', json_bytes(record, channel_id)]
    if sequence is not None:
        with contextlib.suppress(ValueError, OverflowError):  # a time that no date can have; events need none
            moment = datetime.fromtimestamp(sequence.timestamp_us / 1e6, UTC)
            body.append(f',"time":"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"'.encode())
    return b"".join((*body, b"}"))


def _identity(record: Record) -> str:
    """Within a channel."""
    sequence = record.sequence
    if sequence is not None:
        return f"{sequence.epoch}.{sequence.timestamp_us}.{sequence.row_index}"
    return _row_identity(record.body).decode()


def _row_identity(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest()[:32].encode()


@lru_cache(maxsize=1024)
def _heads(channel_id: ChannelId, source: str, producer: str) -> dict[Action, tuple[bytes, bytes, bytes]]:
    """What stands in the events of each action before the identity, from there to the subject, and then to the data."""
    identity, begin = json_text(f"{producer}:{channel_id}").removesuffix('"'), json_text(source)
    return {
        action: (
            f'{{"specversion":"1.0","id":{identity}:'.encode(),
            f'","source":{begin},"type":{json_text(_TYPES[action])},"subject":'.encode(),
            b',"datacontenttype":"application/json","data":' + head,
        )
        for action, head in heads_of(channel_id).items()
    }


def batch_body(events: Sequence[Event]) -> bytes:
    """The JSON array of events, of which there is at least one."""
    bodies = [event.body for event in events]
    bodies[0] = b"[" + bodies[0]
    bodies[-1] += b"]"
    return b",".join(bodies)


def hmac_key(secret: bytes) -> bytes:
    """The key of a secret: decoded from base64 after the prefix `whsec_`, otherwise the secret itself.

    Raises:
        ValueError: no base64 follows the prefix; the text does not repeat the secret.
    """
    if not secret.startswith(PREFIX):
        return secret
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise ValueError(f"allowed behind {PREFIX.decode()} is base64")
    return key


def signature_headers(body: bytes, message_id: str, now: float, secret: bytes | None) -> dict[str, str]:
    """Headers of Standard Webhooks: id, time and, with a secret, ``v1,`` and base64 of an HMAC-SHA256 over all three.

    Args:
        message_id: the same for every try of one request.
        now: Unix seconds; a receiver refuses old ones.
        secret: key of the HMAC.
    """
    headers = {"webhook-id": message_id, "webhook-timestamp": str(int(now))}
    if secret is not None:
        content = f"{message_id}.{int(now)}.".encode() + body
        digest = hmac.digest(secret, content, "sha256")
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers
