"""Every control over the admin port, and its effect on the data port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ConnectionLost, SequenceNumberMismatch, ServerUnavailable, ServiceError
from ots_tunnel.model import Action, Checkpoint, ClientId, Credentials, TunnelType
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.transport.aio import AioTransport

KEYS = static_credentials(Credentials("test-id", "test-secret"))


class Bench:
    """An emulator on its two ports, with a client for each."""

    def __init__(self, emulator: Emulator, http: aiohttp.ClientSession) -> None:
        self.emulator = emulator
        self.http = http
        self.client = TunnelClient(emulator.endpoint, "demo", KEYS)
        self.table = TableClient(emulator.endpoint, "demo", KEYS)

    async def control(self, path: str, *, status: int = 200, **document: Any) -> Any:
        async with self.http.post(self.emulator.admin_url + path, json=document) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def create_table(self) -> None:
        caller = ServiceCaller(AioTransport(self.emulator.endpoint), "demo", KEYS)
        request = pb.CreateTableRequest()
        request.table_meta.table_name = "t"
        request.table_meta.primary_key.add(name="k", type=pb.INTEGER)
        request.reserved_throughput.capacity_unit.read = 0
        request.table_options.time_to_live = -1
        request.table_options.max_versions = 1
        await caller.call(TABLE_OPERATIONS["CreateTable"], request)
        await caller.close()

    async def write(self, *keys: int) -> list[str | None]:
        changes = [RowChange(Action.PUT, encode_row((("k", key),), [Column("v", key)])) for key in keys]
        return [outcome.code for outcome in await self.table.batch_write("t", changes)]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with Emulator(settings=Settings(init_delay=0.0)) as emulator, aiohttp.ClientSession() as http:
        made = Bench(emulator, http)
        await made.create_table()
        yield made
        await made.client.close()
        await made.table.close()


async def test_a_page_of_another_site_controls_nothing(bench: Bench) -> None:
    """A browser sends it without asking first, where the body is called a text."""
    own, rule = bench.emulator.admin_url, '{"operation": "GetRow", "code": "OTSServerBusy", "count": 1}'
    for origin, status in (("https://example.com", 403), ("null", 403), ("http://127.0.0.1:1", 403), (own, 200)):
        headers = {"Origin": origin, "Content-Type": "text/plain"}
        async with bench.http.post(f"{own}/faults", data=rule, headers=headers) as answer:
            assert (answer.status, origin) == (status, origin)
            found = await answer.json()
    assert found == {"rules": 1}


async def test_a_name_that_was_bound_to_this_machine_controls_nothing(bench: Bench) -> None:
    """A page of the name has the right origin then (DNS rebinding)."""
    own = bench.emulator.admin_url
    port = own.rpartition(":")[2]

    async def statuses(name: str) -> list[int]:
        headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
        found = []
        for method, path in (("POST", "/clock"), ("GET", "/state"), ("GET", "/calls"), ("GET", "/healthz")):
            async with bench.http.request(method, own + path, data='{"advance": 0}', headers=headers) as answer:
                found.append(answer.status)
        return found

    assert await statuses("evil.example") == [403, 403, 403, 200]
    for name in ("localhost", "LOCALHOST", "127.0.0.1", "[::1]", "192.168.1.5", "ots.localhost"):
        assert await statuses(name) == [200] * 4, name
    await bench.control("/settings", admin_names="ots, ots.default.svc")
    assert await statuses("ots.default.svc") == [200] * 4
    assert await statuses("evil.example") == [403, 403, 403, 200]


async def test_split_and_merge(bench: Bench) -> None:
    await bench.client.create_tunnel("t", "tunnel", TunnelType.Stream)
    await bench.write(*range(10))

    split = await bench.control("/split", instance="demo", table="t")
    merged = await bench.control("/merge", instance="demo", table="t", partition=split["children"][0])

    assert merged["parents"] == split["children"]
    channels = (await bench.client.describe_tunnel("t", "tunnel")).channels
    assert {channel.channel_id for channel in channels} == {split["parent"], *split["children"], merged["child"]}


async def test_the_clock_moves(bench: Bench) -> None:
    before = (await bench.control("/clock", advance=0))["time"]
    after = (await bench.control("/clock", advance=-3600))["time"]

    assert -3600 <= after - before < -3590
    with pytest.raises(ServiceError, match="OTSAuthFailed"):  # a client an hour ahead of the service
        await bench.client.list_tunnels("t")


async def test_settings_change_while_it_runs(bench: Bench) -> None:
    settings = await bench.control("/settings", init_delay=1000.0, page_rows=7)
    await bench.client.create_tunnel("t", "tunnel", TunnelType.BaseAndStream)

    assert (settings["init_delay"], settings["page_rows"]) == (1000.0, 7)
    description = await bench.client.describe_tunnel("t", "tunnel")
    assert (description.tunnel.stage, description.channels) == ("InitBaseDataAndStreamShard", ())


async def test_bad_settings_are_named(bench: Bench) -> None:
    unknown = await bench.control("/settings", status=400, page_row=7)
    wrong = await bench.control("/settings", status=400, page_rows="many")

    assert "page_row: unknown, the settings are" in unknown["message"]
    assert wrong["message"].startswith("page_rows: ")
    assert bench.emulator.settings.page_rows == 1000


async def test_channels_are_suspended_and_resumed(bench: Bench) -> None:
    tunnel = await bench.client.create_tunnel("t", "tunnel", TunnelType.Stream)
    client = await bench.client.connect(tunnel, 15, "c")
    (channel,) = await bench.client.heartbeat(tunnel, client, ())
    place = {"instance": "demo", "tunnel": "tunnel", "channel": channel.channel_id}

    await bench.control("/channels/suspend", **place)
    (closing,) = await bench.client.heartbeat(tunnel, client, (channel,))
    assert closing.status.name == "CLOSING"
    await bench.control("/clients/expire", instance="demo", tunnel="tunnel")
    other = await bench.client.connect(tunnel, 15, "d")
    assert await bench.client.heartbeat(tunnel, other, ()) == ()
    await bench.control("/channels/resume", **place)
    assert len(await bench.client.heartbeat(tunnel, other, ())) == 1


async def test_a_checkpoint_conflicts(bench: Bench) -> None:
    tunnel = await bench.client.create_tunnel("t", "tunnel", TunnelType.Stream)
    channel = (await bench.client.describe_tunnel("t", "tunnel")).channels[0].channel_id
    stored = await bench.client.get_checkpoint(tunnel, ClientId(""), channel)

    await bench.control("/channels/conflict", instance="demo", tunnel="tunnel", channel=channel)

    with pytest.raises(SequenceNumberMismatch):
        await bench.client.checkpoint(tunnel, ClientId(""), channel, Checkpoint(stored.token, 1))
    await bench.client.checkpoint(tunnel, ClientId(""), channel, Checkpoint(stored.token, 2))


async def test_an_answer_breaks_off_in_its_body_after_the_call_was_executed(bench: Bench) -> None:
    await bench.control("/faults", operation="BatchWriteRow", count=1, cut_response=True)

    with pytest.raises(ConnectionLost):
        await bench.write(1, 2, 3)

    assert bench.emulator.state()["instances"][0]["tables"][0]["rows"] == 3


async def test_one_row_of_a_batch_fails(bench: Bench) -> None:
    await bench.control("/faults", operation="BatchWriteRow", count=1, row_code="OTSServerBusy")

    assert await bench.write(1, 2, 3) == ["OTSServerBusy", None, None]
    assert await bench.write(1) == [None]


async def test_a_fault_can_be_limited_to_one_caller(bench: Bench) -> None:
    fault = {"operation": "BatchWriteRow", "code": "OTSParameterInvalid", "count": 1}
    await bench.control("/faults", **fault, access_key_id="other-id")
    assert await bench.write(1) == [None]

    await bench.control("/faults", **fault, access_key_id="test-id")
    with pytest.raises(ServiceError):
        await bench.write(1)


async def test_rules_are_listed_and_cleared(bench: Bench) -> None:
    await bench.control("/faults", operation="ListTunnel", code="OTSServerBusy", latency=0.5)
    async with bench.http.get(bench.emulator.admin_url + "/faults") as answer:
        (rule,) = (await answer.json())["rules"]
    assert (rule["operation"], rule["code"]) == ("ListTunnel", "OTSServerBusy")

    await bench.control("/faults", clear=True)
    assert await bench.client.list_tunnels("t") == ()


async def test_the_service_is_unavailable_for_a_while(bench: Bench) -> None:
    await bench.control("/faults", unavailable=1000)
    with pytest.raises(ServerUnavailable):
        await bench.write(1)
    await bench.control("/faults", clear=True)


async def test_rules_that_are_over_are_not_in_force(bench: Bench) -> None:
    await bench.control("/faults", unavailable=5)
    await bench.control("/clock", advance=6)

    async with bench.http.get(bench.emulator.admin_url + "/faults") as answer:
        assert await answer.json() == {"rules": []}
    assert bench.emulator.state()["faults"] == 0


@pytest.mark.parametrize("count", [0, 65_537, True])
async def test_partitions_of_a_table_have_the_range_of_the_setting(bench: Bench, count: int) -> None:
    refused = await bench.control("/partitions", status=400, instance="demo", table="t", count=count)

    assert refused["message"] == f"count: found {count}, allowed is a whole number from 1 to 65536"


async def test_the_data_port_has_no_controls(bench: Bench) -> None:
    for path in ("/faults", "/split", "/merge", "/clock", "/settings", "/state"):
        async with bench.http.post(bench.emulator.endpoint + path, json={}) as answer:
            assert answer.status == 400
            assert b"Unsupported operation" in await answer.read()


async def test_a_clock_that_is_not_a_number_is_refused(bench: Bench) -> None:
    refused = await bench.control("/clock", status=400, advance="soon")

    assert refused["message"] == "advance: found 'soon', a number is needed"
