"""The emulator takes and gives the documented bytes, through its public calls."""

from __future__ import annotations

import base64
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from ots_emulator import Emulator, ManualClock, Settings
from ots_tunnel.model import Credentials
from ots_tunnel.protocol import table_pb2, tunnel_pb2
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS, TUNNEL_OPERATIONS
from ots_tunnel.protocol.http.rpc import build_request, parse_response
from ots_tunnel.protocol.http.signing import content_md5
from ots_tunnel.protocol.plainbuffer.crc8 import crc8
from ots_tunnel.protocol.plainbuffer.offsets import strip_extension
from tests.golden.test_message_vectors import LIVE_BASE
from tests.golden.test_signing_vectors import HEARTBEAT, LIST_TABLE, LIST_TABLE_V4, V4
from tests.support import vectors
from tests.support.vectors import Vector

HEARTBEAT_BODY = bytes.fromhex(
    "0a2439393333343730642d386135652d343937322d613562302d623761653666383336343630"
    "120b686f73742d312d306237641a100a0a42617365446174615f3010021804"
)
HEARTBEAT_TIME = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
LIST_TABLE_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()


def test_checksums_are_computed_part_by_part() -> None:
    """The worked example of docs/protocol.md 3.2."""
    stamp = bytes.fromhex("7b68e5cf8b010000")
    age = crc8(bytes.fromhex("001e00000000000000"), crc8(b"age"))
    name = crc8(stamp, crc8(b"name"))

    assert (crc8(b"age"), age, crc8(stamp, age)) == (0x0C, 0xE7, 0xC1)
    assert (crc8(b"name"), name, crc8(b"\x03", name)) == (0x1F, 0x63, 0x27)


async def heartbeat(headers: dict[str, str]) -> tuple[int, str]:
    emulator = Emulator({"testinstance": {"testAccessKeyId": "testAccessKeySecret"}}, clock=ManualClock(HEARTBEAT_TIME))
    response = await emulator.handle(HttpRequest("/tunnel/heartbeat", headers, HEARTBEAT_BODY))
    return response.status, table_pb2.Error.FromString(response.body).code


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ots-signature": "j+umq+0Nf3wfgVKBL85ZqsqxN4k="},
        {"x-ots-ststoken": "testToken", "x-ots-signature": "QukBmPE0djISLb1NzKL2eqHMldk="},
        {**V4, "x-ots-signaturev4": "J2wNt1jLh5X2lk0hCU442nF7qMdp4dMHW6rQ+XeVH1w="},
    ],
    ids=["v2", "v2 with token", "v4"],
)
async def test_signatures_of_the_worked_heartbeat_are_taken(headers: dict[str, str]) -> None:
    assert await heartbeat(HEARTBEAT | headers) == (400, "OTSParameterInvalid")  # the tunnel does not exist
    assert await heartbeat(HEARTBEAT | headers | {"x-ots-trace-id": "other"}) == (403, "OTSAuthFailed")


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"x-ots-signature": "6zl1qyVIdhDVaNek9Zt+nntZ2YM="}, "heFVuCjdyYuZm81tABlSYdx6bZ0="),
        (
            {**LIST_TABLE_V4, "x-ots-signaturev4": "uA1gkFt64xC/wKLcIVqLaIx0L5mQLWyUQt162GOkrC4="},
            "B0MToXhJxgJl3FWdZ8DPLdgjnms=",
        ),
    ],
    ids=["v2", "v4"],
)
async def test_answers_carry_the_documented_signature(
    headers: dict[str, str], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = Emulator({"inst": {"testid": "testsecret"}}, clock=ManualClock(LIST_TABLE_TIME))
    monkeypatch.setattr(uuid, "uuid4", lambda: "req-1")

    response = await emulator.handle(HttpRequest("/ListTable", LIST_TABLE | headers, b""))

    assert (response.status, response.body) == (200, b"")
    assert response.headers["x-ots-date"] == LIST_TABLE["x-ots-date"]
    assert response.headers["x-ots-contentmd5"] == content_md5(b"")
    assert response.headers["Authorization"] == f"OTS testid:{answer}"


class Service:
    """An emulator with one table ``t`` whose stream is on."""

    def __init__(self, *key: tuple[str, str]) -> None:
        self.clock = ManualClock()
        self.emulator = Emulator(settings=Settings(init_delay=0.0), clock=self.clock)
        self.key = key

    async def send(self, name: str, **fields: Any) -> HttpResponse:
        operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
        credentials = Credentials("test-id", "test-secret")
        message = operation.request_type(**fields)
        now = self.clock.now()
        request = build_request(operation, message, instance="demo", credentials=credentials, now=now, trace_id="t")
        return await self.emulator.handle(request)

    async def call(self, name: str, **fields: Any) -> Any:
        operation = TUNNEL_OPERATIONS.get(name) or TABLE_OPERATIONS[name]
        return parse_response(operation, await self.send(name, **fields))

    async def create(self, kind: str) -> str:
        """Create table and tunnel."""
        await self.call(
            "CreateTable",
            table_meta={"table_name": "t", "primary_key": [{"name": name, "type": kind} for name, kind in self.key]},
            reserved_throughput={"capacity_unit": {"read": 0, "write": 0}},
            table_options={"time_to_live": -1, "max_versions": 5, "deviation_cell_version_in_sec": 10**9},
            stream_spec={"enable_stream": True, "expiration_time": 24},
        )
        wanted = {"table_name": "t", "tunnel_name": "tunnel", "tunnel_type": kind}
        return str((await self.call("CreateTunnel", tunnel=wanted)).tunnel_id)

    async def records(self, tunnel: str) -> list[Any]:
        """Read the only channel of a tunnel from its start."""
        described = await self.call("DescribeTunnel", table_name="t", tunnel_name="", tunnel_id=tunnel)
        where = {"tunnel_id": tunnel, "client_id": "", "channel_id": described.channels[0].channel_id}
        token = (await self.call("GetCheckpoint", **where)).checkpoint
        return list((await self.call("ReadRecords", **where, token=token)).records)


def first_of_its_time(vector: Vector) -> bytes:
    """A record whose row index is 0: every change of the emulator has its own commit time."""
    return vector.wire[:-6] + bytes(4) + vector.wire[-2:]


@pytest.mark.parametrize(
    ("vector", "key"),
    [
        (vectors.STREAM_PUT, (("pk1", "STRING"), ("pk2", "INTEGER"))),
        (vectors.STREAM_UPDATE, (("pk1", "STRING"), ("pk2", "INTEGER"))),
        (vectors.WRITES[-1], (("pk", "STRING"),)),
    ],
    ids=["A", "B", "stream"],
)
async def test_changes_come_back_as_the_documented_records(vector: Vector, key: tuple[tuple[str, str], ...]) -> None:
    service = Service(*key)
    tunnel = await service.create("Stream")
    assert vector.sequence is not None
    # In the middle of its microsecond, whichever way the number is rounded.
    service.clock.advance((vector.sequence.timestamp_us + 0.5) / 1e6 - service.clock.now())

    row = strip_extension(vector.wire)
    await service.call("UpdateRow", table_name="t", row_change=row, condition={"row_existence": "IGNORE"})

    (record,) = await service.records(tunnel)
    assert record.record.hex() == first_of_its_time(vector).hex()


async def test_a_deletion_comes_back_as_the_documented_record() -> None:
    """Vector C, but for its epoch: the emulator's is always 0."""
    vector = vectors.STREAM_DELETE
    service = Service(("pk1", "STRING"), ("pk2", "INTEGER"))
    tunnel = await service.create("Stream")
    assert vector.sequence is not None
    service.clock.advance((vector.sequence.timestamp_us + 0.5) / 1e6 - service.clock.now())

    row = strip_extension(vector.wire)
    await service.call("DeleteRow", table_name="t", primary_key=row, condition={"row_existence": "IGNORE"})

    (record,) = await service.records(tunnel)
    assert record.record == vector.wire.replace(b"\x0d\x01\0\0\0\x0e", b"\x0d\0\0\0\0\x0e")


async def test_base_data_and_the_live_services_token() -> None:
    """Vector D is what a base channel gives, from its own first token and from one of the live service (vector E)."""
    service = Service(("key", "STRING"))
    tunnel = await service.create("BaseData")
    condition = {"row_existence": "IGNORE"}
    await service.call("PutRow", table_name="t", row=vectors.BASE_PUT.wire, condition=condition)

    (record,) = await service.records(tunnel)
    where = {"tunnel_id": tunnel, "client_id": "", "channel_id": "BaseData_0"}
    page = await service.call("ReadRecords", **where, token=LIVE_BASE)

    assert record.record.hex() == vectors.BASE_PUT.wire.hex()
    assert [one.record for one in page.records] == [record.record]
    assert (page.next_token, record.action_type) == ("finished", tunnel_pb2.PUT_ROW)


@pytest.mark.parametrize("vector", vectors.WRITES[:-1], ids=lambda vector: vector.name)
async def test_documented_writes_are_taken(vector: Vector) -> None:
    service = Service(("pk", "STRING"))
    await service.create("Stream")
    call, field = {"put": ("PutRow", "row"), "delete": ("DeleteRow", "primary_key")}.get(
        vector.name, ("UpdateRow", "row_change")
    )

    await service.call(call, table_name="t", **{field: vector.wire}, condition={"row_existence": "IGNORE"})
    answer = await service.call(
        "GetRow", table_name="t", primary_key=vectors.WRITES[1].wire[:-3] + _KEY_END, max_versions=5
    )

    # A change that only deletes does not create the row.
    assert bool(answer.row) == (not vector.name.startswith("delete"))


#: Row checksum of the key pk="v" alone.
_KEY_END = bytes((0x09, crc8(b"\xb1\x00")))


async def test_a_first_heartbeat_is_answered_with_the_documented_bytes() -> None:
    service = Service(("key", "STRING"))
    tunnel = await service.create("BaseData")
    client = (await service.call("Connect", tunnel_id=tunnel)).client_id

    response = await service.send("Heartbeat", tunnel_id=tunnel, client_id=client)

    assert response.body.hex() == "0a100a0a42617365446174615f3010011801"


async def test_an_unknown_client_is_answered_with_the_documented_bytes() -> None:
    service = Service(("key", "STRING"))
    tunnel = await service.create("BaseData")

    response = await service.send("Heartbeat", tunnel_id=tunnel, client_id="absent")

    assert response.status == 410
    assert response.body.hex() == (
        "0a0f4f54535265736f75726365476f6e6512205b74756e6e656c736572766963655d20636c69656e74206e6f74206578697374"
    )


async def test_stream_tokens_are_of_the_documented_form() -> None:
    """Version 2 with iterator, timestamp and count, and no key (docs/protocol.md 2.4)."""
    service = Service(("key", "STRING"))
    tunnel = await service.create("Stream")
    described = await service.call("DescribeTunnel", table_name="t", tunnel_name="", tunnel_id=tunnel)
    where = {"tunnel_id": tunnel, "client_id": "", "channel_id": described.channels[0].channel_id}

    token = (await service.call("GetCheckpoint", **where)).checkpoint

    outer = tunnel_pb2.Token.FromString(base64.b64decode(token))
    content = tunnel_pb2.TokenContentV2.FromString(outer.content)
    assert outer.version == 2
    assert [field.name for field, _ in content.ListFields()] == ["iterator", "timestamp", "total_count"]
    assert (content.timestamp, content.total_count) == (0, 0)
