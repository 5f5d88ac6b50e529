"""The lines of the tunnel protocol's conformance checklist that need no vendor client (docs/protocol.md 7)."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.errors import ServiceError, TunnelExpired
from ots_tunnel.model import ChannelStatus, TunnelType
from ots_tunnel.protocol import tunnel_pb2
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS, TUNNEL_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request
from ots_tunnel.protocol.http.signing import content_md5, sign_response, sign_v2, sign_v4
from ots_tunnel.protocol.plainbuffer.codec import decode_row
from ots_tunnel.protocol.token import TokenContent, parse_token
from tests.support.emulator.emulator_driver import CREDENTIALS, Driver, put

MakeDriver = Callable[..., Driver]


def request_of(driver: Driver, name: str = "ListTunnel", **fields: Any) -> HttpRequest:
    operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
    message = operation.request_type(**fields)
    return build_request(
        operation, message, instance="demo", credentials=CREDENTIALS, now=driver.clock.now(), trace_id="t"
    )


def resigned(
    request: HttpRequest, *, v4: bool = False, body: bytes | None = None, **changes: str | None
) -> HttpRequest:
    headers = {name: value for name, value in request.headers.items() if name != "x-ots-signature"}
    body = request.body if body is None else body
    headers["x-ots-contentmd5"] = content_md5(body)
    for name, value in changes.items():
        header = "x-ots-" + name.replace("_", "-")
        if value is None:
            del headers[header]
        else:
            headers[header] = value
    if v4:
        headers["x-ots-signaturev4"] = sign_v4(request.path, headers, "test-secret")
    else:
        headers["x-ots-signature"] = sign_v2(request.path, headers, "test-secret")
    return replace(request, headers=headers, body=body)


async def answer_to(driver: Driver, request: HttpRequest) -> HttpResponse:
    return await driver.emulator.handle(request)


def error_of(response: HttpResponse) -> tuple[int, str, str]:
    error = tunnel_pb2.Error.FromString(response.body)
    return response.status, error.code, error.message


@pytest.mark.parametrize("version", ["2015-12-31", "2018-04-01"])
async def test_tunnel_checklist_01_both_api_versions(driver: Driver, version: str) -> None:
    request = resigned(request_of(driver, table_name="t"), apiversion=version)

    assert (await answer_to(driver, request)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"trace_id": None},
        {"sdk_traceid": "a-b", "trace_threshold": "500"},
        {"ststoken": "token"},
        {"anything-else": "x"},
    ],
)
async def test_tunnel_checklist_01_any_ots_header_is_signed_and_none_is_needed(
    driver: Driver, headers: dict[str, str | None]
) -> None:
    assert (await answer_to(driver, resigned(request_of(driver), **headers))).status == 200


async def test_tunnel_checklist_01_header_names_in_any_case_and_double_slashes(driver: Driver) -> None:
    request = request_of(driver)
    shouting = {"-".join(part.capitalize() for part in name.split("-")): v for name, v in request.headers.items()}

    assert (await answer_to(driver, replace(request, path="//tunnel/list", headers=shouting))).status == 200


async def test_tunnel_checklist_01_odd_date_of_the_go_client(driver: Driver) -> None:
    date = datetime.fromtimestamp(driver.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.123110Z")

    assert (await answer_to(driver, resigned(request_of(driver), date=date))).status == 200


async def test_tunnel_checklist_01_signature_v4(driver: Driver) -> None:
    request = resigned(request_of(driver), v4=True, signdate="20231114", signregion="cn-hangzhou")

    assert (await answer_to(driver, request)).status == 200


async def test_tunnel_checklist_01_deflate_both_ways(driver: Driver) -> None:
    await driver.create_tunnel()
    plain = request_of(driver, table_name="t")
    packed = resigned(
        plain,
        body=zlib.compress(plain.body),
        request_compress_type="deflate",
        request_compress_size=str(len(plain.body)),
        response_compress_type="deflate",
    )

    response = await answer_to(driver, packed)

    body = zlib.decompress(response.body)
    assert response.headers["x-ots-response-compress-size"] == str(len(body))
    assert response.headers["x-ots-contentmd5"] == content_md5(body)  # checked by the Java client after inflation
    assert len(tunnel_pb2.ListTunnelResponse.FromString(body).tunnels) == 1


async def test_tunnel_checklist_01_refused_requests(driver: Driver) -> None:
    good = request_of(driver)
    tampered = replace(good, body=good.body + b"\x0a\x00")
    forged = replace(good, headers={**good.headers, "x-ots-signature": "AAAA"})

    refused = [
        error_of(await answer_to(driver, request))
        for request in (
            tampered,
            forged,
            resigned(good, accesskeyid="absent"),
            resigned(good, instancename="other"),
            resigned(good, date="2023-11-14T21:00:00.000Z"),
            resigned(good, date="yesterday"),
            resigned(good, instancename=None),
            replace(good, path="/tunnel/nothing"),
        )
    ]

    assert [(status, code) for status, code, _ in refused] == [(403, "OTSAuthFailed")] * 5 + [
        (400, "OTSParameterInvalid")
    ] * 3
    assert "MD5" in refused[0][2]
    assert refused[1][2] == "Signature mismatch."
    assert refused[6][2] == "Missing header: 'x-ots-instancename'."


@pytest.mark.parametrize("name", ["DeleteTunnel", "Shutdown", "Checkpoint", "Schedule"])
async def test_tunnel_checklist_02_empty_answers_are_200_with_headers(driver: Driver, name: str) -> None:
    tunnel = await driver.create_tunnel()
    fields: dict[str, Any] = {
        "DeleteTunnel": {"table_name": "t", "tunnel_name": "tunnel"},
        "Shutdown": {"tunnel_id": tunnel, "client_id": "x"},
        "Checkpoint": {
            "tunnel_id": tunnel,
            "client_id": "x",
            "channel_id": "BaseData_0",
            "checkpoint": "finished",
            "sequence_number": 1,
        },
        "Schedule": {"tunnel_id": tunnel},
    }[name]

    response = await answer_to(driver, request_of(driver, name, **fields))

    assert (response.status, response.body) == (200, b"")
    assert response.headers["x-ots-requestid"]


async def test_tunnel_checklist_02_every_answer_carries_a_signature_that_holds(driver: Driver) -> None:
    for request, path in ((request_of(driver), "/tunnel/list"), (request_of(driver, "DescribeTunnel", **MISSING), "")):
        response = await answer_to(driver, request)

        signature = sign_response(path or "/tunnel/describe", response.headers, "test-secret")
        assert response.headers["Authorization"] == f"OTS test-id:{signature}"
        assert response.headers["x-ots-contentmd5"] == content_md5(response.body)
        assert set(response.headers) >= {"x-ots-requestid", "x-ots-date", "x-ots-contenttype"}


MISSING = {"table_name": "t", "tunnel_name": "missing"}


async def test_tunnel_checklist_03_errors_have_two_fields(driver: Driver) -> None:
    response = await answer_to(driver, request_of(driver, "DescribeTunnel", **MISSING))

    status, code, message = error_of(response)
    assert (status, code) == (400, "OTSParameterInvalid")
    assert tunnel_pb2.Error(code=code, message=message).SerializeToString() == response.body


async def test_tunnel_checklist_04_tunnel_info_is_complete(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()

    described = await driver.describe(tunnel)

    info = described.tunnel
    assert (info.tunnel_type, info.table_name, info.instance_name) == ("BaseAndStream", "t", "demo")
    assert info.stream_id.startswith("t_")
    assert info.create_time == int(driver.clock.now() * 1e9)
    assert described.tunnel_rpo == 0
    for channel in described.channels:
        assert channel.channel_type in ("BaseData", "Stream")
        assert channel.channel_status == "WAIT"


async def test_tunnel_checklist_05_initial_tokens_can_be_told_apart(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()

    tokens: dict[str, TokenContent] = {}
    for kind in ("BaseData", "Stream"):
        for channel in await driver.channels(tunnel, kind):
            stored = await driver.checkpoint_of(tunnel, channel)
            assert stored.sequence_number == 0
            tokens[kind] = parse_token(stored.checkpoint)

    assert tokens["BaseData"].primary_key
    assert not tokens["BaseData"].iterator
    assert tokens["Stream"].iterator
    assert tokens["Stream"].primary_key is None


async def test_tunnel_checklist_06_heartbeats_never_show_waiting_or_ended_channels(driver: Driver) -> None:
    tunnel = await driver.create_tunnel()
    client = await driver.connect(tunnel)

    first = await driver.heartbeat(tunnel, client)
    second = await driver.heartbeat(tunnel, client, ("BaseData_0", 2, "TERMINATED"))
    closed = await driver.heartbeat(
        tunnel, client, *[(id_, version + 1, "CLOSE") for id_, (version, _) in second.items()]
    )

    # A returned channel is free, and its next assignment opens it again.
    assert [state for _, state in first.values()] == ["OPEN"]
    assert "BaseData_0" not in second
    assert closed == {id_: (version + 2, "OPEN") for id_, (version, _) in second.items()}


async def test_tunnel_checklist_07_records_are_valid(driver: Driver) -> None:
    await driver.put(1, put("a", 1), put("b", "x"))
    tunnel = await driver.create_tunnel()
    await driver.put(2, put("a", 1))
    for kind, sequenced in (("BaseData", False), ("Stream", True)):
        channel = next(iter(await driver.channels(tunnel, kind)))
        page = await driver.read(tunnel, channel, (await driver.checkpoint_of(tunnel, channel)).checkpoint)

        for record in page.records:
            row = decode_row(record.record, verify=True)
            assert all(column.timestamp_ms is not None for column in row.columns)
            assert (row.sequence is not None) == sequenced
            assert record.record.count(b"\x0b\x18\x00\x00\x00\x0c") == sequenced
            assert not record.HasField("origin_record")


async def test_tunnel_checklist_08_finished_ends_base_channels_and_parents(driver: Driver) -> None:
    await driver.fill(10)
    tunnel = await driver.create_tunnel()
    parent, *_ = driver.emulator.split("demo", "t")

    assert (await driver.drain(tunnel, "BaseData_0"))[1] == "finished"
    assert (await driver.drain(tunnel, parent))[1] == "finished"


async def test_tunnel_checklist_09_data_calls_check_no_owner(driver: Driver) -> None:
    await driver.fill(10)
    tunnel = await driver.create_tunnel()
    token = (await driver.checkpoint_of(tunnel, "BaseData_0")).checkpoint

    await driver.read(tunnel, "BaseData_0", token)
    await driver.checkpoint(tunnel, "BaseData_0", token, 0)
    await driver.checkpoint(tunnel, "BaseData_0", token, 0)


async def test_tunnel_checklist_10_hooks(make_driver: MakeDriver) -> None:
    driver = make_driver(init_delay=1.0)
    await driver.create_table()
    await driver.fill(10)
    tunnel = await driver.create_tunnel("Stream")
    delayed = await driver.describe(tunnel)
    driver.clock.advance(1)
    client = await driver.connect(tunnel)
    channel = next(iter(await driver.heartbeat(tunnel, client)))

    driver.emulator.rebalance("demo", "tunnel", channel)
    rebalanced = await driver.heartbeat(tunnel, client)
    driver.emulator.faults.add(FaultRule("Checkpoint", count=1, code="OTSSequenceNumberNotMatch"))
    with pytest.raises(ServiceError):
        await driver.checkpoint(tunnel, channel, "finished", 1)
    driver.emulator.trim("demo", "t")
    await driver.put(1)
    driver.emulator.trim("demo", "t")

    assert delayed.tunnel.stage == "InitBaseDataAndStreamShard"
    assert rebalanced[channel][1] == "CLOSING"
    with pytest.raises(TunnelExpired):
        await driver.drain(tunnel, channel)


def test_names_of_the_model_are_the_wire_s() -> None:
    assert {kind.name: kind.value for kind in TunnelType} == dict(tunnel_pb2.TunnelType.items())
    assert dict(tunnel_pb2.ChannelStatus.items()).items() <= {s.name: s.value for s in ChannelStatus}.items()
    assert base64.b64decode(content_md5(b""))
