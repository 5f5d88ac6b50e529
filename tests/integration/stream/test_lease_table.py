"""The table of leases on an emulator: conditional writes, and writes that are answered late or never."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from ots_tunnel.console.explanations import Place, explanation
from ots_tunnel.errors import (
    CodecError,
    ConfigError,
    ConnectError,
    ObjectNotExist,
    PermissionDenied,
    ReadTimeout,
    ServerUnavailable,
    TunnelError,
)
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.protocol.http.rpc import error_body
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.stream.calls import lease_table_creation
from ots_tunnel.stream.calls.lease_table import LeaseTable, Listing
from ots_tunnel.stream.calls.lease_table_creation import create_lease_table
from ots_tunnel.stream.holding.held_lease import HeldLease
from ots_tunnel.stream.holding.settings import LeaseSettings
from ots_tunnel.stream.lease import change
from ots_tunnel.stream.lease.change import Change
from ots_tunnel.stream.lease.lease import SHARD_END, HalfLease, Lease, Position, WorkerId
from ots_tunnel.stream.lease.requests import create_request, create_table_request
from ots_tunnel.stream.lease.row import KEY_NAMES, encode_lease, lease_key
from ots_tunnel.stream.shards import ShardId
from tests.support.emulator.emulator_scene import create_table_request as text_key_table
from tests.support.emulator.stream_scene import StreamScene, no_pause, quick_caller, stream_scene

ME, OTHER = WorkerId("me"), WorkerId("other")
LEASE = Lease("s", ShardId("b"), parents=frozenset({ShardId("a"), ShardId("z")}))
#: Repetitions without a pause, for as long as a busy machine may need for the first of them.
QUICK = Backoff(initial=0.01, factor=1, cap=0.01, jitter=0, total=60)
HEADERS = {"x-ots-requestid": "r"}
TIMEOUT = ReadTimeout("no complete answer in time")


class Faults:
    """Between a worker and the service: what happens to the next writes, in turn."""

    def __init__(self, scene: StreamScene) -> None:
        self.scene = scene
        self.next: list[Callable[[HttpRequest], object]] = []
        self.held: list[HttpRequest] = []
        self.calls: list[str] = []

    async def handle(self, request: HttpRequest) -> HttpResponse:
        self.calls.append(request.path[1:])
        if self.next and request.path in ("/UpdateRow", "/PutRow", "/DeleteRow", "/CreateTable"):
            answer = self.next.pop(0)(request)
            if asyncio.iscoroutine(answer):
                answer = await answer
            if isinstance(answer, HttpResponse):
                return answer
            assert isinstance(answer, TunnelError)
            raise answer
        return await self.scene.emulator.handle(request)

    async def carried_out_without_answer(self, request: HttpRequest) -> TunnelError:
        await self.scene.emulator.handle(request)
        return TIMEOUT

    def lost(self, request: HttpRequest) -> TunnelError:
        return TIMEOUT

    def late(self, request: HttpRequest) -> TunnelError:
        """Not carried out until `arrive`."""
        self.held.append(request)
        return TIMEOUT

    async def after_the_late_one(self, request: HttpRequest) -> HttpResponse:
        await self.arrive()
        return await self.scene.emulator.handle(request)

    async def arrive(self) -> None:
        for request in self.held:
            await self.scene.emulator.handle(request)
        self.held.clear()

    def table(self, name: str = "leases") -> LeaseTable:
        return LeaseTable(quick_caller(self.handle), name, schedule=QUICK, sleep=no_pause)


@pytest.fixture
async def faults() -> AsyncIterator[Faults]:
    async with stream_scene() as scene:
        yield Faults(scene)


@pytest.fixture
async def table(faults: Faults) -> LeaseTable:
    made = faults.table()
    await create_lease_table(made)
    await made.create(LEASE)
    faults.calls.clear()
    return made


async def taken(table: LeaseTable, owner: WorkerId = ME) -> Lease:
    lease = await table.apply(change.take(LEASE, owner))
    assert lease is not None
    return lease


async def stored(table: LeaseTable) -> Lease | HalfLease | None:
    return await table.get(LEASE.stream_id, LEASE.shard_id)


async def test_leases_are_listed_by_stream(table: LeaseTable) -> None:
    await table.create(replace(LEASE, shard_id=ShardId("c")))
    await table.create(replace(LEASE, stream_id="t"))

    assert await table.list("s") == Listing((LEASE, replace(LEASE, shard_id=ShardId("c"))))
    assert await table.list("missing") == Listing(())
    assert repr(table) == "LeaseTable(leases)"


async def test_many_leases_are_listed_by_pages(faults: Faults, table: LeaseTable) -> None:
    faults.scene.emulator.change_settings(range_rows=2)
    for number in range(5):
        await table.create(Lease("t", ShardId(f"shard-{number}")))

    listing = await table.list("t")

    assert [lease.shard_id for lease in listing.leases] == [f"shard-{number}" for number in range(5)]
    assert faults.calls.count("GetRange") > 2


async def test_a_lease_that_is_there_is_not_created_again(table: LeaseTable) -> None:
    mine = await taken(table)

    await table.create(LEASE)

    assert await stored(table) == mine


async def test_a_lease_goes_from_worker_to_worker(table: LeaseTable) -> None:
    lease = await taken(table)
    lease = await table.apply(change.renew(lease)) or LEASE
    lease = await table.apply(change.store(lease, Position("i"))) or LEASE
    assert await table.apply(change.steal(lease, OTHER)) == await stored(table)
    asked = await stored(table)
    assert isinstance(asked, Lease)
    given = await table.apply(change.transfer(asked))
    assert given is not None
    assert given.is_handed_over
    theirs = await table.apply(change.take(given, OTHER))

    assert theirs == replace(LEASE, counter=5, owner=OTHER, checkpoint=Position("i"))
    assert await stored(table) == theirs


async def test_of_two_workers_one_takes_the_lease(table: LeaseTable) -> None:
    results = await asyncio.gather(*(table.apply(change.take(LEASE, each)) for each in (ME, OTHER)))

    assert sorted(each is None for each in results) == [False, True]
    assert await stored(table) in results


async def test_only_one_thief_marks_a_lease(table: LeaseTable) -> None:
    mine = await taken(table)
    assert await table.apply(change.steal(mine, OTHER)) is not None

    assert await table.apply(change.steal(mine, WorkerId("third"))) is None


async def test_a_lease_can_be_released_and_handed_over(table: LeaseTable) -> None:
    mine = await taken(table)
    heirs = await table.apply(change.hand_over(mine, OTHER))
    assert heirs == replace(LEASE, counter=2, owner=OTHER, stealer=OTHER)

    assert await table.apply(change.release(heirs)) == replace(LEASE, counter=3)


CHANGES: dict[str, Callable[[Lease], Change]] = {
    "renew": change.renew,
    "take": lambda mine: change.take(mine, OTHER),
    "steal": lambda mine: change.steal(mine, OTHER),
    "checkpoint": lambda mine: change.store(mine, SHARD_END),
    "hand over": lambda mine: change.hand_over(mine, OTHER),
    "release": change.release,
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_that_was_made_without_an_answer_counts(faults: Faults, table: LeaseTable, name: str) -> None:
    made = CHANGES[name](await taken(table))
    faults.next = [faults.carried_out_without_answer]

    assert await table.apply(made) == made.after == await stored(table)


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_that_was_not_made_is_made_again(faults: Faults, table: LeaseTable, name: str) -> None:
    made = CHANGES[name](await taken(table))
    faults.next = [faults.lost]

    assert await table.apply(made) == made.after == await stored(table)


async def test_a_try_that_is_carried_out_under_the_next_one_counts(faults: Faults, table: LeaseTable) -> None:
    renewal = change.renew(await taken(table))
    faults.next = [faults.late, faults.after_the_late_one]

    assert await table.apply(renewal) == renewal.after == await stored(table)


async def test_an_answer_that_is_not_the_services_proves_nothing(faults: Faults, table: LeaseTable) -> None:
    renewal = change.renew(await taken(table))
    faults.next = [lambda _: HttpResponse(200, {}, b""), lambda _: HttpResponse(502, {}, b"bad gateway")]

    assert await table.apply(renewal) == renewal.after == await stored(table)


async def test_a_change_that_another_worker_forestalled_is_lost(faults: Faults, table: LeaseTable) -> None:
    mine = await taken(table)

    async def forestalled(_: HttpRequest) -> TunnelError:
        assert await faults.table().apply(change.take(mine, OTHER)) is not None
        return TIMEOUT

    faults.next = [forestalled]

    assert await table.apply(change.renew(mine)) is None


async def test_a_change_of_a_deleted_lease_is_lost(table: LeaseTable) -> None:
    mine = await taken(table)
    assert await table.delete(mine)

    assert await table.apply(change.renew(mine)) is None
    assert await stored(table) is None


async def test_a_change_that_stays_unanswered_is_an_error_that_says_so(faults: Faults, table: LeaseTable) -> None:
    mine = await taken(table)
    faults.next = [faults.lost] * 1000
    patient = LeaseTable(quick_caller(faults.handle), "leases", schedule=replace(QUICK, total=0.05))

    with pytest.raises(ReadTimeout) as caught:
        await patient.apply(change.renew(mine))

    assert caught.value.retryable
    assert await stored(table) == mine


async def test_a_write_of_an_earlier_call_that_arrives_late_does_not_cost_the_lease(
    faults: Faults, table: LeaseTable
) -> None:
    mine = await taken(table)
    faults.next = [faults.late] + [faults.lost] * 1000
    stopped = LeaseTable(quick_caller(faults.handle), "leases", schedule=replace(QUICK, total=0))
    doubted = change.store(mine, Position("i"))
    with pytest.raises(ReadTimeout):
        await stopped.apply(doubted)
    faults.next = []
    await faults.arrive()

    assert await table.apply(change.renew(mine)) is None
    renewed = await table.apply(change.renew(mine), doubted=[doubted])

    assert renewed == replace(mine, counter=3, checkpoint=Position("i")) == await stored(table)


async def test_a_replay_begins_at_the_checkpoint_whose_answer_was_lost(faults: Faults, table: LeaseTable) -> None:
    mine = await taken(table)
    impatient = LeaseTable(quick_caller(faults.handle), "leases", schedule=replace(QUICK, total=0))
    clock = asyncio.get_running_loop().time
    held = HeldLease(impatient, LeaseSettings(), mine, clock(), clock)
    faults.next = [faults.late]
    with pytest.raises(ReadTimeout):
        await held.store(Position("i"))
    await faults.arrive()

    begun = await held.settle()

    assert begun == Position("i") == (await stored(table)).checkpoint


async def test_a_change_on_top_of_a_late_one_that_stays_open_does_not_cost_the_lease(
    faults: Faults, table: LeaseTable
) -> None:
    mine = await taken(table)
    impatient = LeaseTable(quick_caller(faults.handle), "leases", schedule=replace(QUICK, total=0))
    clock = asyncio.get_running_loop().time
    held = HeldLease(impatient, LeaseSettings(), mine, clock(), clock)
    faults.next = [faults.late]
    with pytest.raises(ReadTimeout):
        await held.store(Position("i"))
    await faults.arrive()
    # The renewal fails the condition that the checkpoint has moved, and is sent again on top of it.
    faults.next = [faults.scene.emulator.handle, faults.late]
    with pytest.raises(ReadTimeout):
        await held.renew()
    await faults.arrive()

    assert await held.renew()

    assert held.lease == replace(mine, counter=4, checkpoint=Position("i")) == await stored(table)


async def test_a_late_renewal_does_not_pass_for_a_new_one(table: LeaseTable) -> None:
    mine = await taken(table)
    late = await table.apply(change.renew(mine))
    assert late is not None

    assert await table.apply(change.renew(mine), doubted=[change.renew(mine)]) == replace(late, counter=3)


async def test_a_mark_that_stood_for_a_moment_forbids_a_steal(faults: Faults, table: LeaseTable) -> None:
    mine = await taken(table)
    refused = HttpResponse(403, HEADERS, error_body("OTSConditionCheckFail", "Condition check failed."))
    faults.next = [faults.lost, lambda _: refused]

    assert await table.apply(change.steal(mine, OTHER)) is None


async def test_a_gift_that_was_made_without_an_answer_is_not_renewed_afterwards(table: LeaseTable) -> None:
    mine = await taken(table)
    gift = change.hand_over(mine, OTHER)
    theirs = await table.apply(gift)

    assert await table.apply(change.renew(mine), doubted=[gift]) is None
    assert await stored(table) == theirs


async def test_a_lease_that_another_worker_took_is_lost_in_spite_of_a_doubt(table: LeaseTable) -> None:
    mine = await taken(table)
    assert await table.apply(change.take(mine, OTHER)) is not None

    assert await table.apply(change.renew(mine), doubted=[change.store(mine, Position("i"))]) is None


@pytest.mark.parametrize("make", [change.renew, lambda lease: change.store(lease, Position("i")), change.release])
async def test_a_former_owner_changes_nothing_where_the_counters_meet_after_a_reset(
    table: LeaseTable, make: Callable[[Lease], Change]
) -> None:
    """A worker of the Java library writes a lease anew over one that is held, and takes it."""
    mine = await taken(table)
    reset = create_request("leases", LEASE)
    reset.condition.row_existence = pb.IGNORE
    reset.row = encode_lease(LEASE)
    await table.put(reset)
    theirs = await taken(table, OTHER)
    assert theirs.counter == mine.counter

    assert await table.apply(make(mine)) is None
    assert await stored(table) == theirs


async def test_no_connection_is_tried_again_without_a_look(faults: Faults, table: LeaseTable) -> None:
    mine = await taken(table)
    faults.calls.clear()
    faults.next = [lambda _: ConnectError("refused")]

    assert await table.apply(change.renew(mine)) == replace(mine, counter=2)
    assert faults.calls == ["UpdateRow", "UpdateRow"]


async def test_a_refusal_leaves_at_once(faults: Faults, table: LeaseTable) -> None:
    mine = await taken(table)
    faults.next = [lambda _: HttpResponse(403, HEADERS, error_body("OTSNoPermissionAccess", "not allowed"))]

    with pytest.raises(PermissionDenied):
        await table.apply(change.renew(mine))


async def test_a_creation_without_an_answer_is_sent_again(faults: Faults, table: LeaseTable) -> None:
    other = replace(LEASE, shard_id=ShardId("other"))
    faults.next = [faults.carried_out_without_answer]

    await table.create(other)

    assert await table.get("s", other.shard_id) == other


async def test_a_deletion_is_for_the_lease_that_was_seen(faults: Faults, table: LeaseTable) -> None:
    mine = await taken(table)

    assert not await table.delete(LEASE)
    assert await stored(table) == mine
    faults.next = [faults.carried_out_without_answer]
    assert await table.delete(mine)
    assert await stored(table) is None


async def test_half_a_lease_is_listed_and_replaced(faults: Faults, table: LeaseTable) -> None:
    for name in ("LeaseCounter", "Checkpoint"):
        half = HalfLease("s", ShardId(f"without-{name}"), (name,))
        whole = Lease("s", half.shard_id)
        columns = [
            Column(column, value)
            for column, value in (
                ("LeaseCounter", 4),
                ("LeaseOwner", "other"),
                ("LeaseStealer", ""),
                ("Checkpoint", "i"),
                ("ParentShardIds", ""),
            )
            if column != name
        ]
        await faults.scene.caller.call(
            TABLE_OPERATIONS["PutRow"],
            pb.PutRowRequest(
                table_name="leases",
                row=encode_row(lease_key("s", half.shard_id), columns),
                condition=pb.Condition(row_existence=pb.IGNORE),
            ),
        )
        assert half in (await table.list("s")).half

        await table.create(whole, over=half)
        assert await table.get("s", half.shard_id) == whole
        taken_now = await table.apply(change.take(whole, ME))
        await table.create(whole, over=half)
        assert await table.get("s", half.shard_id) == taken_now


async def test_a_row_that_was_cut_is_refused(faults: Faults) -> None:
    async def cut(request: HttpRequest) -> HttpResponse:
        answer = pb.GetRangeResponse(
            consumed=pb.ConsumedCapacity(capacity_unit=pb.CapacityUnit()), rows=b"", next_token=b"more"
        )
        return HttpResponse(200, HEADERS, answer.SerializeToString())

    with pytest.raises(CodecError, match="larger than an answer"):
        await LeaseTable(quick_caller(cut), "leases").list("s")


async def test_a_missing_table_is_no_empty_one(faults: Faults) -> None:
    with pytest.raises(ObjectNotExist) as found:
        await faults.table("missing").list("s")

    # not the source table, which the worker's place names
    text = explanation(found.value, Place("http://here", "demo", "/keys", "orders", settings="source."))
    assert "table of leases 'missing'" in text
    assert "orders" not in text


async def test_two_workers_create_one_table(faults: Faults) -> None:
    await asyncio.gather(*(create_lease_table(faults.table("both")) for _ in range(2)))
    await create_lease_table(faults.table("both"))

    assert await faults.table("both").list("s") == Listing(())


async def test_a_table_that_is_created_without_an_answer_is_found(faults: Faults) -> None:
    faults.next = [faults.carried_out_without_answer]

    await create_lease_table(faults.table("silent"))

    assert faults.calls.count("CreateTable") == 1


async def test_a_table_that_another_worker_created_meanwhile_is_used(faults: Faults) -> None:
    async def forestalled(request: HttpRequest) -> HttpResponse:
        await faults.scene.emulator.handle(request)
        return await faults.scene.emulator.handle(request)

    faults.next = [forestalled]

    await create_lease_table(faults.table("both"))


async def test_a_creation_that_is_refused_says_why(faults: Faults) -> None:
    faults.next = [lambda _: HttpResponse(403, HEADERS, error_body("OTSNoPermissionAccess", "not allowed"))]

    with pytest.raises(PermissionDenied, match="not allowed"):
        await create_lease_table(faults.table())


async def test_a_new_table_is_awaited(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_table_creation, "LOOK_SECONDS", 0.0)
    looks = 0

    async def not_ready(request: HttpRequest) -> HttpResponse:
        nonlocal looks
        looks += request.path == "/GetRow"
        if request.path == "/GetRow" and looks <= 2:
            return HttpResponse(404, HEADERS, error_body("OTSTableNotReady", "not ready"))
        return await faults.scene.emulator.handle(request)

    once = Backoff(initial=1, factor=1, cap=1, jitter=0, total=0)
    await create_lease_table(LeaseTable(quick_caller(not_ready), "slow", schedule=once))

    assert looks == 3
    looks = -1000
    with pytest.raises(ServerUnavailable, match="not ready"):
        await create_lease_table(LeaseTable(quick_caller(not_ready), "slow", schedule=once), ready_seconds=-1)


async def create(faults: Faults, request: pb.CreateTableRequest) -> None:
    await faults.scene.caller.call(TABLE_OPERATIONS["CreateTable"], request)


async def test_a_table_with_another_key_is_refused(faults: Faults) -> None:
    await create(faults, text_key_table("orders"))

    with pytest.raises(ConfigError) as caught:
        await create_lease_table(faults.table("orders"))

    allowed = ", ".join(f"{name} STRING" for name in KEY_NAMES)
    assert str(caught.value) == f"primary key of lease table 'orders': found pk STRING, allowed is {allowed}"


async def test_a_table_whose_rows_expire_is_refused(faults: Faults) -> None:
    request = create_table_request("datax")
    request.table_options.time_to_live = 86400 * 30
    await create(faults, request)

    with pytest.raises(ConfigError, match="found 2592000 s, allowed is -1"):
        await create_lease_table(faults.table("datax"))


async def test_a_table_without_updates_is_refused(faults: Faults) -> None:
    request = create_table_request("fixed")
    request.table_options.allow_update = False
    await create(faults, request)

    with pytest.raises(ConfigError, match="updates of lease table 'fixed'"):
        await create_lease_table(faults.table("fixed"))
