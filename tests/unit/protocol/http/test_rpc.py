"""Requests out, answers and errors in."""

from __future__ import annotations

import pytest

from ots_tunnel import errors
from ots_tunnel.errors import CodecError, ServiceError
from ots_tunnel.model import Credentials
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import OPERATIONS_BY_PATH, TABLE_OPERATIONS, TUNNEL_OPERATIONS, Operation
from ots_tunnel.protocol.http.rpc import build_request, error_body, parse_response, service_time
from ots_tunnel.protocol.http.signing import content_md5, sign_v2
from ots_tunnel.protocol.service_codes import ERROR_CLASSES
from ots_tunnel.version import __version__

CREDENTIALS = Credentials("id", "secret")
CONNECT = TUNNEL_OPERATIONS["Connect"]
LIST_TUNNEL = TUNNEL_OPERATIONS["ListTunnel"]
GET_RANGE = TABLE_OPERATIONS["GetRange"]


def build(op: Operation, message: object, credentials: Credentials = CREDENTIALS) -> HttpRequest:
    return build_request(
        op,
        message,
        instance="demo",
        credentials=credentials,
        now=1700000000.1239,
        trace_id="trace",
    )


def failed(status: int, body: bytes, op: Operation = CONNECT) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        parse_response(op, HttpResponse(status, {"x-ots-requestid": "r-1"}, body))
    return caught.value


def test_tunnel_request_carries_the_documented_headers() -> None:
    request = build(CONNECT, tunnel_pb2.ConnectRequest(tunnel_id="t"))

    assert request.path == "/tunnel/connect"
    assert dict(request.headers) == {
        "user-agent": f"ots-tunnel/{__version__}",
        "x-ots-accesskeyid": "id",
        "x-ots-apiversion": "2018-04-01",
        "x-ots-contentmd5": content_md5(request.body),
        "x-ots-date": "2023-11-14T22:13:20.123Z",
        "x-ots-instancename": "demo",
        "x-ots-trace-id": "trace",
        "x-ots-signature": sign_v2(request.path, request.headers, "secret"),
    }


def test_table_request_has_its_own_path_version_and_trace_header() -> None:
    request = build(TABLE_OPERATIONS["ListTable"], table_pb2.ListTableRequest())

    assert (request.path, request.body) == ("/ListTable", b"")
    assert request.headers["x-ots-apiversion"] == "2015-12-31"
    assert request.headers["x-ots-sdk-traceid"] == "trace"
    assert "x-ots-trace-id" not in request.headers


def test_security_token_is_sent_and_signed() -> None:
    request = build(LIST_TUNNEL, tunnel_pb2.ListTunnelRequest(), Credentials("id", "secret", "sts"))

    without = {name: value for name, value in request.headers.items() if name != "x-ots-ststoken"}
    assert request.headers["x-ots-ststoken"] == "sts"
    assert request.headers["x-ots-signature"] != sign_v2(request.path, without, "secret")


def test_incomplete_request_is_refused() -> None:
    with pytest.raises(CodecError, match="ConnectRequest is incomplete"):
        build(CONNECT, tunnel_pb2.ConnectRequest())


def test_request_of_another_operation_is_refused() -> None:
    with pytest.raises(CodecError, match="Connect takes ConnectRequest, not ShutdownRequest"):
        build(CONNECT, tunnel_pb2.ShutdownRequest(tunnel_id="t", client_id="c"))


@pytest.mark.parametrize("status", [200, 201, 204])
def test_any_2xx_is_a_success(status: int) -> None:
    body = tunnel_pb2.ConnectResponse(client_id="c").SerializeToString()

    assert parse_response(CONNECT, HttpResponse(status, {}, body)).client_id == "c"


def test_empty_body_is_an_answer_without_required_fields() -> None:
    assert parse_response(TUNNEL_OPERATIONS["Checkpoint"], HttpResponse(200)) == tunnel_pb2.CheckpointResponse()


def test_empty_body_is_refused_where_a_field_is_required() -> None:
    with pytest.raises(CodecError, match="ConnectResponse lacks client_id"):
        parse_response(CONNECT, HttpResponse(200))


@pytest.mark.parametrize("body", [b"<html>", b"\x0a\x05ab", b"\xff" * 20], ids=["page", "truncated", "noise"])
def test_success_with_a_foreign_body_is_malformed(body: bytes) -> None:
    with pytest.raises(CodecError):
        parse_response(CONNECT, HttpResponse(200, {}, body))


@pytest.mark.parametrize(
    ("op", "body", "field"),
    [
        (CONNECT, b"\x0a\x01\xff", "ConnectResponse.client_id"),
        (TABLE_OPERATIONS["ListTable"], b"\x0a\x01a\x0a\x01\xff", "ListTableResponse.table_names"),
        (TUNNEL_OPERATIONS["Heartbeat"], bytes.fromhex("0a070a01ff10011801"), "Channel.channel_id"),
    ],
    ids=["field", "list", "message within"],
)
def test_text_that_is_not_utf_8_is_malformed(op: Operation, body: bytes, field: str) -> None:
    with pytest.raises(CodecError, match=f"{field} is not UTF-8"):
        parse_response(op, HttpResponse(200, {}, body))


def test_unknown_field_of_a_newer_service_is_ignored() -> None:
    body = tunnel_pb2.ConnectResponse(client_id="c").SerializeToString() + b"\xa2\x06\x01x"

    assert parse_response(CONNECT, HttpResponse(200, {}, body)).client_id == "c"


@pytest.mark.parametrize(("code", "kind"), ERROR_CLASSES.items())
def test_every_code_becomes_its_class(code: str, kind: type[ServiceError]) -> None:
    error = failed(400, error_body(code, "text"))

    assert type(error) is kind
    assert (error.code, error.message, error.request_id, error.http_status) == (code, "text", "r-1", 400)


@pytest.mark.parametrize(("status", "kind"), [(400, ServiceError), (500, errors.ServerUnavailable)])
def test_unknown_code_is_retryable_only_with_5xx(status: int, kind: type[ServiceError]) -> None:
    assert type(failed(status, error_body("OTSNewCode", ""))) is kind


def test_trimmed_data_is_final_whatever_its_code_says() -> None:
    body = error_body("OTSTunnelServerUnavailable", "OTSTrimmedDataAccess: Requested stream data is already trimmed")

    assert type(failed(400, body)) is errors.TunnelExpired


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Too frequent table operations.", errors.ServerUnavailable),
        ("Number of tables exceeds the quota:64.", ServiceError),
    ],
)
def test_quota_error_is_retryable_only_for_frequency(message: str, kind: type[ServiceError]) -> None:
    assert type(failed(403, error_body("OTSQuotaExhausted", message))) is kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("tunnel not exist", errors.TunnelNotFound),
        ("table does not exist", errors.TableNotFound),
        ("parameter x is wrong", errors.ParameterInvalid),
    ],
)
def test_the_kind_of_missing_object_follows_from_the_text(message: str, kind: type[ServiceError]) -> None:
    assert type(failed(400, error_body("OTSParameterInvalid", message))) is kind


@pytest.mark.parametrize(
    "third", [b"\x1a\x00", b"\x1a\x04text", b"\x1a\x03\x0a\x01a"], ids=["empty", "text", "message"]
)
def test_third_field_of_an_error_is_ignored(third: bytes) -> None:
    assert type(failed(410, error_body("OTSResourceGone", "gone") + third)) is errors.ResourceGone


@pytest.mark.parametrize("body", [b"", b"<html>Bad Gateway</html>", b"\x12\x01x"], ids=["none", "page", "no code"])
def test_5xx_without_error_message_is_temporary(body: bytes) -> None:
    tunnel, table = failed(502, body), failed(502, body, GET_RANGE)

    assert (type(tunnel), tunnel.code) == (errors.ServerUnavailable, "OTSTunnelServerUnavailable")
    assert (type(table), table.code) == (errors.ServerUnavailable, "OTSServerUnavailable")


@pytest.mark.parametrize("status", [408, 425, 429])
@pytest.mark.parametrize("body", [b"", b"<html>Too Many Requests</html>"], ids=["none", "page"])
def test_a_proxy_that_asks_for_patience_is_temporary(status: int, body: bytes) -> None:
    for error in (failed(status, body), failed(status, body, GET_RANGE)):
        assert (type(error), error.code, error.http_status) == (errors.ServerUnavailable, "OTSClientError", status)


def test_other_status_without_error_message_keeps_the_text_short() -> None:
    error = failed(404, b"<html>\n  not   found " + b"x" * 5000)

    assert (type(error), error.code, error.http_status) == (ServiceError, "OTSClientError", 404)
    assert error.message.startswith("HTTP 404: <html> not found xxx")
    assert len(error.message) < 230


def test_redirect_is_an_error() -> None:
    assert failed(301, b"").code == "OTSClientError"


@pytest.mark.parametrize("status", [301, 403, 407, 413, 503])
def test_an_error_without_a_body_shows_its_status(status: int) -> None:
    assert failed(status, b"").message == f"HTTP {status} without a body"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ots-date": "2026-01-02T03:04:05.678Z", "date": "Fri, 02 Jan 2026 09:09:09 GMT"}, 1767323045),
        ({"date": "Fri, 02 Jan 2026 03:04:05 GMT"}, 1767323045),
        ({"x-ots-date": "soon", "date": "Fri, 02 Jan 2026 03:04:05 GMT"}, 1767323045),
        ({"date": "Fri, 31 Feb 2026 03:04:05 GMT"}, None),
        ({"date": "yesterday"}, None),
        ({}, None),
    ],
)
def test_service_time_comes_from_the_better_header(headers: dict[str, str], seconds: float | None) -> None:
    assert service_time(HttpResponse(200, headers)) == seconds


def test_tables_know_every_documented_path() -> None:
    tunnel = "create delete list describe connect heartbeat shutdown getcheckpoint readrecords checkpoint schedule"
    table = (
        "CreateTable DeleteTable UpdateTable DescribeTable ListTable PutRow UpdateRow DeleteRow GetRow BatchWriteRow "
        "BatchGetRow GetRange ComputeSplitPointsBySize StartLocalTransaction CommitTransaction AbortTransaction "
        "ListStream DescribeStream GetShardIterator GetStreamRecord"
    )
    paths = {f"/tunnel/{name}" for name in [*tunnel.split(), "getrpo", "getrpobyoffset"]}

    assert set(OPERATIONS_BY_PATH) == paths | {f"/{name}" for name in table.split()}


def test_only_reads_are_idempotent() -> None:
    operations = [*TUNNEL_OPERATIONS.values(), *TABLE_OPERATIONS.values()]
    reads = ("List", "Describe", "Get", "Read", "BatchGet", "Compute")

    assert all(op.idempotent == op.name.startswith(reads) for op in operations)


@pytest.mark.parametrize("operation", [TUNNEL_OPERATIONS["Heartbeat"], TABLE_OPERATIONS["BatchWriteRow"]])
@pytest.mark.parametrize("token", [None, "sts"])
def test_the_signature_covers_the_sorted_headers_of_every_operation(operation: Operation, token: str | None) -> None:
    request = build_request(
        operation, b"body", instance=" i ", credentials=Credentials("id", "secret", token), now=0, trace_id="trace"
    )

    assert request.headers["x-ots-signature"] == sign_v2(request.path, request.headers, "secret")
