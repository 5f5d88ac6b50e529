"""Records as CloudEvents 1.0 in JSON batches, signed as Standard Webhooks describes; pure.

A replay repeats the id of an event, so that a receiver recognizes repeated events by source and id.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ots_tunnel.model import Action, ChannelId
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.json_bytes import json_bytes
from ots_tunnel.sinks.json_record import json_key, json_text

CONTENT_TYPE = "application/cloudevents-batch+json; charset=UTF-8"
_TYPES = {action: f"dev.ots-tunnel.row.{action.name.lower()}" for action in Action}

#: Begins a secret in the form of Standard Webhooks; base64 follows.
PREFIX = b"whsec_"


@dataclass(frozen=True, slots=True)
class Event:
    """One record as the bytes of its event."""

    key: bytes = field(repr=False)
    body: bytes = field(repr=False)
    record: Record = field(repr=False)

    @property
    def size(self) -> int:
        """Bytes in a request, with its comma."""
        return len(self.body) + 1


def event_of(record: Record, channel_id: ChannelId, source: str) -> Event:
    """The event of a record.

    Args:
        source: names the table, such as ``ots://instance/table``.

    Raises:
        CodecError: the record is malformed.
    """
    sequence = record.sequence
    event = {
        "specversion": "1.0",
        "id": _identity(record, channel_id),
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
    return Event(record.key, b"".join((*body, b"}")), record)


def _identity(record: Record, channel_id: ChannelId) -> str:
    sequence = record.sequence
    if sequence is not None:
        return f"{channel_id}:{sequence.epoch}.{sequence.timestamp_us}.{sequence.row_index}"
    # Existing rows have no sequence; each of their keys comes once.
    return f"{channel_id}:{hashlib.sha256(record.key).hexdigest()[:32]}"


def batch_body(events: tuple[Event, ...]) -> bytes:
    """The JSON array of events."""
    return b"[" + b",".join(event.body for event in events) + b"]"


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
