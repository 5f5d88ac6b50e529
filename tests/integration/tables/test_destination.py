"""Table administration and the destination through the vendor's SDK against the emulator."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.client.table import TableClient
from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import (
    AuthFailed,
    ConfigError,
    ConnectError,
    ConnectionLost,
    ObjectAlreadyExist,
    ObjectNotExist,
    ParameterInvalid,
    ServerUnavailable,
)
from ots_tunnel.model import Action, CellOp, Credentials, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import POOL_THREADS, AsyncTableAdmin, RowWrite, TableAdmin, TableSchema
from ots_tunnel.tables.compatibility import ANY_DEVIATION, planned_schema
from ots_tunnel.tables.destination import DestinationResult, ensure_destination
from ots_tunnel.tables.sdk import sdk
from ots_tunnel_operator.instance import Instance, InstanceTables, table_schema
from ots_tunnel_operator.turns.calls import Calls

SOURCE = TableSchema(
    "orders",
    (KeyColumn("shop", KeyType.STRING), KeyColumn("number", KeyType.INTEGER, auto_increment=True)),
    defined_columns=(("price", "DOUBLE"),),
    ttl_seconds=864_000,
    max_versions=3,
)


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator({"demo": {"test-id": "test-secret"}, "other": {"test-id": "test-secret"}}) as emulator:
        yield emulator


@pytest.fixture
def source(emulator: Emulator) -> Iterator[TableAdmin]:
    admin = connect(emulator.endpoint, "demo")
    admin.create(SOURCE)
    yield admin
    admin.close()


@pytest.fixture
def destination(emulator: Emulator) -> Iterator[TableAdmin]:
    admin = connect(emulator.endpoint, "other")
    yield admin
    admin.close()


def connect(endpoint: str, instance: str, secret: str = "test-secret") -> TableAdmin:
    return TableAdmin(endpoint, instance, static_credentials(Credentials("test-id", secret)))


def test_a_table_is_described_as_it_was_created(source: TableAdmin) -> None:
    assert source.describe("orders") == SOURCE
    assert source.describe("nothing") is None
    assert source.list() == ("orders",)
    source.delete("orders")
    assert source.list() == ()
    with pytest.raises(ObjectNotExist):
        source.delete("orders")


@pytest.mark.parametrize("table", [SOURCE, replace(SOURCE, defined_columns=(), allow_update=False)])
async def test_the_projects_own_client_describes_a_table_as_the_vendors_does(
    table: TableSchema, destination: TableAdmin
) -> None:
    destination.create(table)
    provider = static_credentials(Credentials("test-id", "test-secret"))
    client = TableClient(destination.endpoint, "other", provider)

    found = table_schema(await client.describe_table(table.name))

    assert found == destination.describe(table.name) == table
    await client.close()


async def test_the_projects_own_client_sees_whether_a_table_is_empty(emulator: Emulator, source: TableAdmin) -> None:
    schema = TableSchema("rows", (KeyColumn("pk", KeyType.STRING), KeyColumn("number", KeyType.INTEGER)))
    source.create(schema)
    client = TableClient(source.endpoint, "demo", static_credentials(Credentials("test-id", "test-secret")))

    assert await client.is_empty("rows", schema.keys)
    source.write("rows", [RowWrite(Action.PUT, (("pk", "a"), ("number", 1)))])
    assert not await client.is_empty("rows", schema.keys)
    emulator.call("add_fault", FaultRule("GetRange", code="OTSTableNotReady"))
    # tried once: repetitions would last for half a minute
    async with asyncio.timeout(5):
        with pytest.raises(ServerUnavailable, match="OTSTableNotReady"):
            await client.is_empty("rows", schema.keys)
    await client.close()


async def test_a_page_without_rows_before_the_end_is_no_empty_table(
    source: TableAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service may answer so where it has looked at enough of a table (docs/data-plane.md 2.6)."""
    schema = TableSchema("rows", (KeyColumn("pk", KeyType.STRING),))
    source.create(schema)
    source.write("rows", [RowWrite(Action.PUT, (("pk", "a"),))])
    client = TableClient(source.endpoint, "demo", static_credentials(Credentials("test-id", "test-secret")))
    call, get_range = ServiceCaller.call, sdk.OTSClient.get_range
    short, short_of_sdk = iter([True]), iter([True])

    async def short_call(caller: ServiceCaller, operation: Any, message: Any, **more: Any) -> Any:
        answer, length = await call(caller, operation, message, **more)
        if next(short, False):
            answer.rows, answer.next_start_primary_key = b"", message.inclusive_start_primary_key
        return answer, length

    def short_get_range(client: Any, table: str, direction: str, low: Any, *rest: Any, **more: Any) -> Any:
        answer = get_range(client, table, direction, low, *rest, **more)
        return (answer[0], low, [], *answer[3:]) if next(short_of_sdk, False) else answer

    monkeypatch.setattr(ServiceCaller, "call", short_call)
    monkeypatch.setattr(sdk.OTSClient, "get_range", short_get_range)

    assert not await client.is_empty("rows", schema.keys)
    assert not source.is_empty("rows", schema)
    await client.close()


async def test_the_destination_is_created_once(source: TableAdmin, destination: TableAdmin) -> None:
    first = await ensure_destination(source, destination, "orders", "copy", create=True)
    second = await ensure_destination(source, destination, "orders", "copy", create=True)

    planned = planned_schema(SOURCE, "copy")
    assert first == DestinationResult(True, planned)
    assert second == DestinationResult(False, planned)
    assert planned.deviation_seconds == ANY_DEVIATION
    assert destination.describe("copy") == planned
    assert await AsyncTableAdmin(destination).list() == ("copy",)
    assert await AsyncTableAdmin(destination).is_empty("copy", planned)


async def test_the_operator_creates_the_same_by_looks_of_the_projects_own_client(
    emulator: Emulator, source: TableAdmin, destination: TableAdmin
) -> None:
    keys, planned = Credentials("test-id", "test-secret"), planned_schema(SOURCE, "copy")
    instances = [Instance(emulator.endpoint, admin.instance, keys, Calls()) for admin in (source, destination)]
    tables = InstanceTables(instances[0]), InstanceTables(instances[1])

    first = await ensure_destination(*tables, "orders", "copy", create=True)
    second = await ensure_destination(*tables, "orders", "copy", create=True)
    emulator.call("add_fault", FaultRule("GetRange", code="OTSTableNotReady"))
    with pytest.raises(ServerUnavailable, match="'copy' does not answer row calls yet"):
        await ensure_destination(*tables, "orders", "copy", create=True, deadline=0.0)

    assert (first, second) == (DestinationResult(True, planned), DestinationResult(False, planned))
    assert destination.describe("copy") == planned
    for instance in instances:
        await instance.close()


async def test_waiting_for_a_new_table_holds_no_thread(source: TableAdmin, destination: TableAdmin) -> None:
    ready, asked = threading.Event(), threading.Semaphore(0)

    class Slow(TableAdmin):
        def answers(self, table: str, schema: TableSchema) -> bool:
            asked.release()
            return ready.is_set()

    slow = Slow(destination.endpoint, "other", static_credentials(Credentials("test-id", "test-secret")))
    copies = [
        asyncio.create_task(ensure_destination(source, slow, "orders", f"copy_{number}", create=True))
        for number in range(POOL_THREADS)
    ]
    for _ in copies:
        assert await asyncio.to_thread(asked.acquire, timeout=20)

    async with asyncio.timeout(20):
        assert len(await AsyncTableAdmin(destination).list()) == POOL_THREADS
        assert not any(copy.done() for copy in copies)
        ready.set()
        assert all(result.created for result in await asyncio.gather(*copies))
    slow.close()


async def test_losing_the_race_to_create_is_fine(source: TableAdmin, destination: TableAdmin) -> None:
    class Slow(TableAdmin):
        def create(self, schema: TableSchema) -> None:
            destination.create(schema)
            super().create(schema)

    slow = Slow(destination.endpoint, "other", static_credentials(Credentials("test-id", "test-secret")))
    result = await ensure_destination(source, slow, "orders", "copy", create=True)
    slow.close()

    assert result == DestinationResult(False, planned_schema(SOURCE, "copy"))


async def test_many_at_once_create_it_once(source: TableAdmin, destination: TableAdmin) -> None:
    results = await asyncio.gather(
        *(ensure_destination(source, destination, "orders", "copy", create=True) for _ in range(POOL_THREADS))
    )

    assert sum(result.created for result in results) == 1
    assert all(result.problems == () for result in results)


async def test_an_unfit_table_is_left_as_it_is(source: TableAdmin, destination: TableAdmin) -> None:
    unfit = replace(planned_schema(SOURCE, "copy"), max_versions=1, deviation_seconds=86_400)
    destination.create(unfit)

    result = await ensure_destination(source, destination, "orders", "copy", create=True)

    assert [problem.field for problem in result.problems] == ["max versions", "max version deviation seconds"]
    assert destination.describe("copy") == unfit


async def test_nothing_is_created_where_creation_is_not_allowed(source: TableAdmin, destination: TableAdmin) -> None:
    [problem] = (await ensure_destination(source, destination, "orders", "copy", create=False)).problems

    assert problem.field == "table"
    assert destination.list() == ()


async def test_a_missing_source_and_the_source_itself_are_refused(source: TableAdmin, destination: TableAdmin) -> None:
    with pytest.raises(ObjectNotExist, match="source table 'nothing'"):
        await ensure_destination(source, destination, "nothing", "copy", create=True)
    with pytest.raises(ConfigError, match="is the source itself"):
        await ensure_destination(source, source, "orders", "orders", create=True)
    assert destination.list() == ()


async def test_a_table_that_never_answers_ends_at_the_deadline(source: TableAdmin, destination: TableAdmin) -> None:
    class Unready(TableAdmin):
        def answers(self, table: str, schema: TableSchema) -> bool:
            return False

    began = time.monotonic()
    unready = Unready(destination.endpoint, "other", static_credentials(Credentials("test-id", "test-secret")))
    with pytest.raises(ServerUnavailable, match="'copy' does not answer"):
        await ensure_destination(source, unready, "orders", "copy", create=True, deadline=1.5)
    unready.close()

    assert 1.5 <= time.monotonic() - began < 10


def test_errors_are_the_packages_own(emulator: Emulator, source: TableAdmin) -> None:
    with pytest.raises(ObjectAlreadyExist):
        source.create(SOURCE)
    with pytest.raises(AuthFailed):
        connect(emulator.endpoint, "demo", "wrong").list()
    with pytest.raises(AuthFailed):
        connect(emulator.endpoint, "nowhere").list()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectError):
            connect(f"http://127.0.0.1:{free.getsockname()[1]}", "demo").list()


def test_changed_credentials_are_used_at_once(emulator: Emulator) -> None:
    current = Credentials("test-id", "wrong")
    admin = TableAdmin(emulator.endpoint, "demo", lambda: current)
    with pytest.raises(AuthFailed):
        admin.list()
    current = Credentials("test-id", "test-secret")

    assert admin.list() == ()
    admin.close()


def test_rows_of_every_kind_are_written_with_their_outcomes(source: TableAdmin) -> None:
    schema = TableSchema("rows", (KeyColumn("pk", KeyType.STRING),), max_versions=3)
    source.create(schema)
    assert source.is_empty("rows", schema)
    version = int(time.time() * 1000)
    values = ("x", 1, 1.5, True, b"\x00\xff")
    columns = tuple(Column(f"c{number}", value, version) for number, value in enumerate(values))
    deletions = (
        Column("c0", None, version, CellOp.DELETE_ONE_VERSION),
        Column("c1", None, None, CellOp.DELETE_ALL_VERSIONS),
    )
    rows = [
        RowWrite(Action.UPDATE, (("pk", "a"),), deletions),
        RowWrite(Action.PUT, (("wrong", "b"),)),
        RowWrite(Action.DELETE, (("pk", "c"),)),
        RowWrite(Action.PUT, (("pk", "d"),), columns),
    ]

    outcomes = source.write("rows", rows)

    assert [outcome and outcome.code for outcome in outcomes] == [None, "OTSInvalidPK", None, None]
    assert not source.is_empty("rows", schema)
    source.write("rows", [RowWrite(Action.DELETE, (("pk", "a"),))])
    assert source.first_version("rows", schema) == version


def test_a_table_that_is_not_ready_is_neither_empty_nor_full(emulator: Emulator, source: TableAdmin) -> None:
    emulator.call("add_fault", FaultRule("GetRange", code="OTSTableNotReady"))

    assert not source.answers("orders", SOURCE)
    with pytest.raises(ServerUnavailable, match="'orders' does not answer yet"):
        source.is_empty("orders", SOURCE)


async def test_a_new_table_is_waited_for_across_a_lost_connection(source: TableAdmin, destination: TableAdmin) -> None:
    lost = [ConnectionLost("cut")]

    class Shaky(TableAdmin):
        def answers(self, table: str, schema: TableSchema) -> bool:
            if lost:
                raise lost.pop()
            return super().answers(table, schema)

    shaky = Shaky(destination.endpoint, "other", static_credentials(Credentials("test-id", "test-secret")))
    result = await ensure_destination(source, shaky, "orders", "copy", create=True)
    shaky.close()

    assert result.created
    assert not lost


async def test_the_calls_as_coroutines(emulator: Emulator) -> None:
    admin = AsyncTableAdmin.connect(
        emulator.endpoint, "demo", static_credentials(Credentials("test-id", "test-secret"))
    )

    await admin.create(SOURCE)
    assert await admin.describe("orders") == SOURCE
    await admin.delete("orders")
    assert await admin.list() == ()
    await admin.close()
    assert repr(admin) == f"AsyncTableAdmin(TableAdmin(demo at {emulator.endpoint}))"


def test_a_refused_read_is_not_mistaken_for_a_table_that_is_not_ready(emulator: Emulator, source: TableAdmin) -> None:
    emulator.call("add_fault", FaultRule("GetRange", code="OTSParameterInvalid"))

    with pytest.raises(ParameterInvalid):
        source.answers("orders", SOURCE)
