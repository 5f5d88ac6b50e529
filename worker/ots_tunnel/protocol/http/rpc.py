"""Calls as values: typed message to `HttpRequest`, `HttpResponse` to typed message or error.

Requests are signed with V2, which both services accept. Source: docs/protocol.md 1 and 2, docs/data-plane.md 1 and 2.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from ots_tunnel.errors import CodecError, ServiceError
from ots_tunnel.model import Credentials
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse, SummedBody
from ots_tunnel.protocol.http.operations import TABLE_API_VERSION, TUNNEL_API_VERSION, Operation
from ots_tunnel.protocol.http.signing import digest_text, format_date, parse_date, sign_v2_in_order
from ots_tunnel.protocol.md5 import md5_of
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.version import __version__

#: A request: its message, its bytes, or its bytes and their MD5.
Encodable = Message | bytes | SummedBody

USER_AGENT: Final = f"ots-tunnel/{__version__}"

#: Seconds between the clocks, beyond which the service refuses a request (docs/data-plane.md 1).
MOST_APART: Final = 900.0

#: Characters of a foreign error page that are kept; own choice.
_TEXT_LIMIT = 200
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,99}")
_HTTP_DATE = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def build_request(
    op: Operation, message: Encodable, *, instance: str, credentials: Credentials, now: float, trace_id: str
) -> HttpRequest:
    """Serialize and sign one call.

    Args:
        op: the operation; `message` is of its request type.
        message: the request, or its body where it was encoded for speed (see `page`).
        instance: instance name.
        credentials: what to sign with.
        now: Unix seconds; the service refuses a date that is minutes off.
        trace_id: free text by which the service's logs find the call.

    Raises:
        CodecError: the message lacks a required field or is of another type.
    """
    body, md5 = _body(op, message)
    headers = {
        "x-ots-accesskeyid": credentials.access_key_id,
        "x-ots-apiversion": op.api_version,
        "x-ots-contentmd5": digest_text(md5),
        "x-ots-date": format_date(now),
        "x-ots-instancename": instance,
    }
    # In alphabetical order, as the signature needs them.
    if op.api_version == TABLE_API_VERSION:
        headers["x-ots-sdk-traceid"] = trace_id
    if credentials.security_token:
        headers["x-ots-ststoken"] = credentials.security_token
    if op.api_version == TUNNEL_API_VERSION:
        headers["x-ots-trace-id"] = trace_id
    headers["x-ots-signature"] = sign_v2_in_order(op.path, headers, credentials.access_key_secret)
    headers["user-agent"] = USER_AGENT
    return HttpRequest(op.path, headers, body)


def _body(op: Operation, message: Encodable) -> SummedBody:
    if isinstance(message, SummedBody):
        return message
    body = message if isinstance(message, bytes) else _serialize(op, message)
    return SummedBody(body, md5_of((body,))[0])


def _serialize(op: Operation, message: Message) -> bytes:
    if not isinstance(message, op.request_type):
        raise CodecError(f"{op.name} takes {op.request_type.__name__}, not {type(message).__name__}")
    try:
        return message.SerializeToString()
    except EncodeError as error:
        raise CodecError(f"{op.request_type.__name__} is incomplete: {error}") from error


def body_of(op: Operation, response: HttpResponse) -> bytes:
    """The body of a success, for messages that are not parsed as a whole (see `page`).

    Raises:
        ServiceError: the service answered with an error; the subclass decides what to do (see `errors`).
    """
    if not 200 <= response.status < 300:
        raise _parse_error(op, response)
    return response.body


# The result is of the operation's response type, which the type system cannot follow through the tables.
def parse_response(op: Operation, response: HttpResponse) -> Any:
    """The answer as a message of the operation's response type.

    Raises:
        ServiceError: the service answered with an error; the subclass decides what to do (see `errors`).
        CodecError: see `message_of`.
    """
    return message_of(op.response_type, body_of(op, response))


def message_of(response_type: type[Message], body: bytes) -> Any:
    """The body of a success as a message.

    Raises:
        CodecError: the bytes are not that message, lack a required field, or have text that is not UTF-8.
    """
    message: Any = response_type()
    name = response_type.__name__
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise CodecError(f"answer of {len(body)} bytes is not a {name}") from error
    missing = message.FindInitializationErrors()
    if missing:
        raise CodecError(f"{name} lacks {', '.join(missing[:5])}")
    check_text(message)
    return message


def _parse_error(op: Operation, response: HttpResponse) -> ServiceError:
    request_id = response.headers.get("x-ots-requestid", "")
    error = tunnel_pb2.Error()
    try:
        error.ParseFromString(response.body)
        known = error.IsInitialized() and isinstance(error.code, str) and _CODE.fullmatch(error.code)
    except DecodeError:
        known = None
    if known:
        message = error.message if isinstance(error.message, str) else _shorten(error.message)
        return service_error(error.code, message, request_id, response.status)
    # A load balancer's error page, or an empty body, is treated as the vendor's Go client does (docs/protocol.md 1.10).
    shortened = _shorten(response.body)
    text = f"HTTP {response.status}: {shortened}" if shortened else f"HTTP {response.status} without a body"
    if response.status >= 500:
        unavailable = "OTSServerUnavailable" if op.api_version == TABLE_API_VERSION else "OTSTunnelServerUnavailable"
        return service_error(unavailable, text, request_id, response.status)
    return service_error("OTSClientError", text, request_id, response.status)


def _shorten(body: bytes) -> str:
    text = " ".join(body[: 4 * _TEXT_LIMIT].decode(errors="replace").split())
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}..."


def error_body(code: str, message: str) -> bytes:
    """Body of an error answer: code and message, never a third field (docs/protocol.md 1.10)."""
    return tunnel_pb2.Error(code=code, message=message).SerializeToString()


def service_time(response: HttpResponse) -> float | None:
    """Time of the answer in Unix seconds, without a fraction; None where no header has it."""
    date = response.headers.get("x-ots-date")
    if date is not None:
        try:
            return parse_date(date)
        except CodecError:
            pass  # the other header may be readable; an unknown time is a valid result
    return _parse_http_date(response.headers.get("date", ""))


def _parse_http_date(text: str) -> float | None:
    match = _HTTP_DATE.fullmatch(text.strip())
    if match is None or match[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
    try:
        return datetime(year, _MONTHS.index(match[2]) + 1, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def check_text(message: Message) -> None:
    """Refuse text that is not UTF-8; protobuf returns such proto2 fields as bytes.

    Raises:
        CodecError: names the field.
    """
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            if any(isinstance(item, bytes) for item in ((value,) if isinstance(value, str | bytes) else value)):
                raise CodecError(f"{message.DESCRIPTOR.name}.{field.name} is not UTF-8")
        elif field.message_type is not None and _holds_text(field.message_type):
            for item in (value,) if isinstance(value, Message) else value:
                check_text(item)


# The records of a page hold no text and are not walked.
@lru_cache(maxsize=256)
def _holds_text(descriptor: Descriptor) -> bool:
    return any(
        field.type == FieldDescriptor.TYPE_STRING
        or (field.message_type is not None and _holds_text(field.message_type))
        for field in descriptor.fields
    )
