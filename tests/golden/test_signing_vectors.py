"""Signatures, digests and dates against values that the vendor's signers computed."""

from __future__ import annotations

import pytest

from ots_tunnel.model import Channel, ChannelId, ChannelStatus
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.http.signing import (
    content_md5,
    parse_date,
    sign_response,
    sign_v2,
    sign_v4,
    string_to_sign,
    v4_signing_key,
)
from ots_tunnel.protocol.messages import channels_to_wire

HEARTBEAT = {
    "x-ots-accesskeyid": "testAccessKeyId",
    "x-ots-apiversion": "2018-04-01",
    "x-ots-contentmd5": "RCXBXlAGkbzvgBifWM93aw==",
    "x-ots-date": "2024-01-02T03:04:05.678Z",
    "x-ots-instancename": "testinstance",
    "x-ots-trace-id": "11111111-2222-4333-8444-555555555555",
}
LIST_TABLE = {
    "x-ots-accesskeyid": "testid",
    "x-ots-apiversion": "2015-12-31",
    "x-ots-contentmd5": "1B2M2Y8AsgTpgAmY7PhCfg==",
    "x-ots-date": "2026-01-02T03:04:05.000Z",
    "x-ots-instancename": "inst",
}
ANSWER = {
    "x-ots-contentmd5": "1B2M2Y8AsgTpgAmY7PhCfg==",
    "x-ots-contenttype": "protocol buffer",
    "x-ots-date": "2026-01-02T03:04:05.000Z",
    "x-ots-requestid": "req-1",
}
V4 = {"x-ots-signdate": "20240102", "x-ots-signregion": "cn-hangzhou"}
LIST_TABLE_V4 = {"x-ots-signdate": "20260102", "x-ots-signregion": "cn-hangzhou"}


def test_heartbeat_body_and_its_digest() -> None:
    request = tunnel_pb2.HeartbeatRequest(
        tunnel_id="9933470d-8a5e-4972-a5b0-b7ae6f836460",
        client_id="host-1-0b7d",
        channels=channels_to_wire([Channel(ChannelId("BaseData_0"), 2, ChannelStatus.TERMINATED)]),
    )

    body = request.SerializeToString()

    assert body.hex() == (
        "0a2439393333343730642d386135652d343937322d613562302d623761653666383336343630"
        "120b686f73742d312d306237641a100a0a42617365446174615f3010021804"
    )
    assert content_md5(body) == "RCXBXlAGkbzvgBifWM93aw=="


def test_digest_of_an_empty_body() -> None:
    assert content_md5(b"") == "1B2M2Y8AsgTpgAmY7PhCfg=="


def test_string_to_sign_of_the_worked_example() -> None:
    text = string_to_sign("/tunnel/heartbeat", HEARTBEAT)

    assert len(text) == 248
    assert text.startswith("/tunnel/heartbeat\nPOST\n\nx-ots-accesskeyid:testAccessKeyId\n")
    assert text.endswith("x-ots-trace-id:11111111-2222-4333-8444-555555555555\n")


def test_v2_of_the_worked_example() -> None:
    assert sign_v2("/tunnel/heartbeat", HEARTBEAT, "testAccessKeySecret") == "j+umq+0Nf3wfgVKBL85ZqsqxN4k="


def test_v2_with_a_security_token() -> None:
    headers = HEARTBEAT | {"x-ots-ststoken": "testToken"}

    assert len(string_to_sign("/tunnel/heartbeat", headers)) == 273
    assert sign_v2("/tunnel/heartbeat", headers, "testAccessKeySecret") == "QukBmPE0djISLb1NzKL2eqHMldk="


def test_v2_of_list_table() -> None:
    assert sign_v2("/ListTable", LIST_TABLE, "testsecret") == "6zl1qyVIdhDVaNek9Zt+nntZ2YM="


def test_signature_ignores_case_order_padding_and_what_is_not_signed() -> None:
    headers = {name.title(): f" {value} " for name, value in reversed(LIST_TABLE.items())}
    headers |= {"X-Ots-Signature": "old", "x-ots-signaturev4": "old", "User-Agent": "any"}

    assert sign_v2("/ListTable", headers, "testsecret") == "6zl1qyVIdhDVaNek9Zt+nntZ2YM="


def test_v4_keys() -> None:
    tunnel_key = v4_signing_key("testAccessKeySecret", "20240102", "cn-hangzhou")
    table_key = v4_signing_key("testsecret", "20260102", "cn-hangzhou")

    assert tunnel_key == "V5zuYdJazNI+aX/e6DuhJmwlV2ksvzlGiM6xX8TSNaE="
    assert table_key == "T+W/EGjCXQgDNdB4vKsCKnjD8ZyNRGE5m3zXo2uu2mo="


def test_v4_signatures() -> None:
    heartbeat = sign_v4("/tunnel/heartbeat", HEARTBEAT | V4, "testAccessKeySecret")
    list_table = sign_v4("/ListTable", LIST_TABLE | LIST_TABLE_V4, "testsecret")

    assert heartbeat == "J2wNt1jLh5X2lk0hCU442nF7qMdp4dMHW6rQ+XeVH1w="
    assert list_table == "uA1gkFt64xC/wKLcIVqLaIx0L5mQLWyUQt162GOkrC4="


def test_response_signatures() -> None:
    assert sign_response("/ListTable", ANSWER, "testsecret") == "heFVuCjdyYuZm81tABlSYdx6bZ0="
    v4_key = v4_signing_key("testsecret", "20260102", "cn-hangzhou")
    assert sign_response("/ListTable", ANSWER, v4_key) == "B0MToXhJxgJl3FWdZ8DPLdgjnms="


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        ("2025-01-05T03:04:05.153Z", 1736046245),
        ("2025-12-31T22:04:05.123110Z", 1767218645),
        ("2025-10-09T00:00:00.10912Z", 1759968000),
        ("2025-10-09T00:00:00Z", 1759968000),
    ],
)
def test_dates_of_the_go_client_are_read_without_their_fraction(sent: str, seconds: int) -> None:
    assert parse_date(sent) == seconds
