"""Checks that the service could have sent an answer: headers, signature, message, code, readable rows."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import DecodeError, Message

from ots_emulator.api import unsupported
from ots_emulator.server.application import readable
from ots_tunnel.errors import CodecError
from ots_tunnel.protocol import table_pb2
from ots_tunnel.protocol.http.message import HttpResponse
from ots_tunnel.protocol.http.operations import OPERATIONS_BY_PATH, Operation
from ots_tunnel.protocol.http.rpc import check_text
from ots_tunnel.protocol.http.signing import content_md5, sign_response, v4_signing_key
from ots_tunnel.protocol.plainbuffer.codec import decode_primary_key, decode_row, decode_rows
from ots_tunnel.protocol.plainbuffer.tags import HEADER_BYTES, ROW_DATA
from tests.support.emulator.returned import returned_cells
from tests.support.emulator.row_matrix import read_matrix

SECRET = "test-secret"
KEY_ID = "test-id"
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z")
_CODE = re.compile(r"OTS[A-Za-z]{3,60}")
#: Statuses of refusals; 500 and 503 are never the answer to bad input.
_REFUSALS = frozenset((400, 403, 404, 405, 409, 410, 413))
_FORBIDDEN = frozenset(("OTSInternalServerError", "OTSServerUnavailable", "OTSTunnelServerUnavailable"))
_HEADERS = ("x-ots-contentmd5", "x-ots-contenttype", "x-ots-date", "x-ots-requestid", "Authorization")


def _read_row(row: bytes) -> None:
    """Read a row, or the new values that a write returns, which have no key."""
    if row[HEADER_BYTES : HEADER_BYTES + 1] == bytes((ROW_DATA,)):
        returned_cells(row)
    elif row:
        decode_row(row)


#: How clients read the rows and keys of answers, by field.
_READERS: dict[str, Callable[[bytes], object]] = {
    "row": _read_row,
    "record": decode_row,
    "rows": decode_rows,
    "next_start_primary_key": decode_primary_key,
    "shard_splits": decode_primary_key,
    "split_points": decode_primary_key,
}


class WrongAnswer(AssertionError):
    """An answer that the service could not have given."""


def check_answer(path: str, sent: Mapping[str, str], response: HttpResponse) -> bool:
    """Check one answer.

    Args:
        path: the signed path.
        sent: headers of the request.
        response: the answer.

    Returns:
        Whether the call succeeded.

    Raises:
        WrongAnswer: the text has the reason.
    """
    body = _checked_body(path, sent, response)
    if response.status == 200:
        operation = OPERATIONS_BY_PATH.get(path) or unsupported.OPERATIONS_BY_PATH.get(path)
        if operation is None:
            raise WrongAnswer("success of an operation that does not exist")
        _check_success(operation, body)
        return True
    _check_error(response.status, body)
    return False


def _checked_body(path: str, sent: Mapping[str, str], response: HttpResponse) -> bytes:
    headers = {name.lower(): value for name, value in response.headers.items()}
    for name in _HEADERS:
        # In this spelling: some clients do not ignore the case.
        if not response.headers.get(name):
            raise WrongAnswer(f"header {name} is missing")
    if not _DATE.fullmatch(headers["x-ots-date"]):
        raise WrongAnswer(f"x-ots-date is {headers['x-ots-date']}")
    _check_signature(path, {name.lower(): readable(value) for name, value in sent.items()}, headers)
    body = response.body
    if headers.get("x-ots-response-compress-type") == "deflate":
        body = zlib.decompress(body)
        if headers.get("x-ots-response-compress-size") != str(len(body)):
            raise WrongAnswer("x-ots-response-compress-size is not that of the body")
    if headers["x-ots-contentmd5"] != content_md5(body):
        raise WrongAnswer("x-ots-contentmd5 is not that of the body")
    return body


def _check_signature(path: str, sent: Mapping[str, str], headers: Mapping[str, str]) -> None:
    key = SECRET
    if "x-ots-signaturev4" in sent:
        key = v4_signing_key(SECRET, sent.get("x-ots-signdate", "").strip(), sent.get("x-ots-signregion", "").strip())
    signed = f"OTS {KEY_ID}:{sign_response(path, headers, key)}"
    known = sent.get("x-ots-accesskeyid") == KEY_ID and sent.get("x-ots-instancename") == "demo"
    if known and headers["authorization"] != signed:
        raise WrongAnswer(f"authorization is {headers['authorization']}, right is {signed}")
    if not re.fullmatch(r"OTS [^:\s]*:[A-Za-z0-9+/]{27}=", headers["authorization"]):
        raise WrongAnswer(f"authorization is {headers['authorization']}")


def _check_error(status: int, body: bytes) -> None:
    try:
        error = table_pb2.Error.FromString(body)
    except DecodeError as cause:
        raise WrongAnswer(f"status {status} with a body that is not an Error: {body[:200]!r}") from cause
    _check_refusal(error)
    if status not in _REFUSALS:
        raise WrongAnswer(f"status {status}, {error.code}: {error.message}")


def _check_refusal(error: Any) -> None:
    try:
        check_text(error)
    except CodecError as cause:
        raise WrongAnswer(str(cause)) from cause
    if not error.IsInitialized() or not _CODE.fullmatch(error.code) or error.code in _FORBIDDEN or not error.message:
        raise WrongAnswer(f"error {error.code!r}: {error.message!r}")
    if len(error.message) > 4000:
        raise WrongAnswer(f"a message of {len(error.message)} characters")


def _check_success(operation: Operation, body: bytes) -> None:
    try:
        message = operation.response_type.FromString(body)
        if not message.IsInitialized():
            raise WrongAnswer(f"{operation.name} lacks {', '.join(message.FindInitializationErrors())}")
        check_text(message)
        _check_rows(message)
    except (DecodeError, CodecError) as cause:
        raise WrongAnswer(f"{operation.name}: {cause}") from cause


def _check_rows(message: Message) -> None:
    """Read every row and key in an answer as a client would."""
    if isinstance(message, table_pb2.GetRangeResponse) and message.data_block_type == table_pb2.DBT_SIMPLE_ROW_MATRIX:
        read_matrix(message.rows)
        message.rows = b""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in (value,) if isinstance(value, Message) else value:
                _check_rows(item)
        elif field.type == Field.TYPE_BYTES and field.name in _READERS:
            for item in (value,) if isinstance(value, bytes) else value:
                _READERS[field.name](item)
    error = getattr(message, "error", None)
    if error is not None and message.HasField("error"):
        _check_refusal(error)
