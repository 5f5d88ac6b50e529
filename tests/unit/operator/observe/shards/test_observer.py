"""The calls about shards and leases in a look, and what they become."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.client.table_calls import StreamDescription, TableDescription
from ots_tunnel.errors import CodecError, ConnectError, NoStream, TunnelError, TunnelExpired
from ots_tunnel.model import KeyColumn, KeyType, SequenceInfo
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.stream.calls.lease_table import Listing
from ots_tunnel.stream.lease.lease import SHARD_END, TRIM_HORIZON, Lease, Position, WorkerId
from ots_tunnel.stream.lease.row import KEY_NAMES
from ots_tunnel.stream.shards import Shard, ShardId, ShardIterator, ShardPage, StreamInfo, StreamShards
from ots_tunnel_operator.autoscale.history import History, Idle
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.shards import checkpoints
from ots_tunnel_operator.observe.shards.observer import ShardsObserver
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.status_change import is_different
from ots_tunnel_operator.turns.calls import Calls
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.absence import UNREAD, Failure, Missing
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.stream_worlds import (
    LEASES,
    STREAM_ID,
    stream_pod,
    stream_recorded,
    stream_resource,
    stream_world,
)
from tests.support.operator.worlds import KEYS, NOW, SETTINGS, deployment, planned, report_channel, reported

READ = Position("i")
OURS = WorkerId("01234567-pod-1-1-aa")
LEASE_KEYS = tuple(KeyColumn(name, KeyType.STRING) for name in KEY_NAMES)


def lease(shard: str, owner: WorkerId = OURS, checkpoint: Position = READ, counter: int = 1) -> Lease:
    return Lease(STREAM_ID, ShardId(shard), counter, owner, checkpoint=checkpoint)


@dataclass
class Service:
    """One instance with a stream of two shards; counts the calls by name."""

    leases_of: list[Lease] | TunnelError = field(default_factory=lambda: [lease("s1"), lease("s2")])
    stream: TunnelError | None = None
    records: dict[str, float] = field(default_factory=dict)
    read_error: TunnelError | None = None
    refused: str = ""
    broken: str = ""
    goes: list[TunnelError | None] = field(default_factory=list)
    table: tuple[KeyColumn, ...] = LEASE_KEYS
    time_to_live: int = -1
    allow_update: bool = True
    unreadable: tuple[CodecError, ...] = ()
    now: float = NOW
    calls: list[str] = field(default_factory=list)

    def leases(self, table: str) -> Any:
        assert table == LEASES
        return SimpleNamespace(list=self.list)

    async def list(self, stream_id: str) -> Listing:
        self.calls.append("GetRange")
        if isinstance(self.leases_of, TunnelError):
            raise self.leases_of
        return Listing(tuple(self.leases_of), unreadable=self.unreadable)

    async def stream_of(self, table: str) -> StreamInfo:
        self.calls.append("ListStream")
        if self.stream is not None:
            raise self.stream
        return StreamInfo(STREAM_ID, table, 1)

    async def describe(self, stream_id: str) -> StreamShards:
        self.calls.append("DescribeStream")
        if self.goes:
            self.stream = self.goes.pop()
            raise service_error("OTSObjectNotExist", "Requested stream does not exist.")
        return StreamShards((Shard(ShardId("s1")), Shard(ShardId("s2"))), 86400, self.now)

    async def iterator(self, stream_id: str, shard_id: ShardId) -> ShardIterator:
        self.calls.append("GetShardIterator")
        return ShardIterator(f"oldest of {shard_id}")

    async def read(self, iterator: ShardIterator, *, limit: int) -> ShardPage:
        assert limit == 1
        self.calls.append(f"read {iterator}")
        if self.read_error is not None:
            raise self.read_error
        if self.broken == iterator:
            raise ConnectError("broken")
        if self.refused == iterator:
            raise service_error("OTSParameterInvalid", "Invalid shard iterator.")
        time = self.records.get(iterator)
        records = [] if time is None else [SimpleNamespace(sequence=SequenceInfo(1, int(time * 1e6), 0))]
        return ShardPage(cast(Any, records), ShardIterator("next"), bool(records), 1, NOW - 2)

    async def describe_table(self, table: str) -> TableDescription:
        self.calls.append("DescribeTable")
        assert table == LEASES
        stream = StreamDescription(enabled=False, expiration_hours=0)
        return TableDescription(table, self.table, self.time_to_live, 1, 86_400, stream, allow_update=self.allow_update)

    async def close(self) -> None:
        pass


def connected(service: Service) -> LoopCache:
    cache = LoopCache()
    instance = SimpleNamespace(
        credentials=KEYS, streams=service, leases=service.leases, rows=service, calls=Calls(), close=service.close
    )
    cache.source.instance = cast(Instance, instance)
    return cache


async def look(cache: LoopCache, of: World | None = None) -> World:
    found = of or stream_world(tunnel=UNREAD)
    return await ShardsObserver(SETTINGS).observe(found, cache, Patience.after(None))


def states(found: World) -> dict[str, str]:
    assert isinstance(found.tunnel, Tunnel)
    return {str(each.channel_id): each.status.name for each in found.tunnel.description.channels}


async def test_leases_are_listed_before_the_shards_and_no_record_is_read_where_workers_report() -> None:
    service = Service()

    found = await look(connected(service))

    assert service.calls == ["ListStream", "GetRange", "DescribeTable", "DescribeStream"]
    assert states(found) == {"s1": "OPEN", "s2": "OPEN"}
    assert (found.foreign_since, found.peeks) == ({}, {})


async def test_a_burst_of_events_looks_once_a_poll() -> None:
    service = Service()
    cache = connected(service)

    first, second = await look(cache), await look(cache)
    later = await look(cache, stream_world(tunnel=UNREAD, now=NOW + SETTINGS.poll_seconds))

    assert first.tunnel is second.tunnel
    assert service.calls.count("GetRange") == 2
    assert isinstance(later.tunnel, Tunnel)


async def test_a_table_that_no_worker_has_created_has_no_leases() -> None:
    service = Service(service_error("OTSObjectNotExist", "no table"))

    assert states(await look(connected(service))) == {"s1": "CLOSE", "s2": "CLOSE"}


async def test_a_stream_that_is_off_is_missing() -> None:
    found = await look(connected(Service(stream=NoStream("flights"))))

    assert found.tunnel == Missing()


async def test_a_stream_that_is_switched_off_during_a_look_is_no_missing_table() -> None:
    found = await look(connected(Service(goes=[NoStream("flights")])))

    assert found.tunnel == Missing()


async def test_a_shard_that_is_dropped_during_a_look_is_no_missing_table() -> None:
    again = await look(connected(Service(goes=[None])))
    twice = await look(connected(Service(goes=[None, None])))

    assert states(again) == {"s1": "OPEN", "s2": "OPEN"}
    assert isinstance(twice.tunnel, Failure)
    assert twice.tunnel.problem.reason is Reason.SERVICE_REFUSED


async def test_a_table_with_another_key_is_named() -> None:
    refused = service_error("OTSInvalidPK", "Validate PK size fail.")
    service = Service(refused, table=(KeyColumn("pk", KeyType.STRING),))

    found = await look(connected(service))

    assert isinstance(found.tunnel, Failure)
    assert (found.tunnel.problem.reason, found.tunnel.problem.stops_workers) == (Reason.LEASE_TABLE_UNUSABLE, True)
    assert "found pk STRING, allowed is StreamId STRING" in found.tunnel.problem.message


@pytest.mark.parametrize(
    ("service", "says"),
    [
        (Service(time_to_live=86_400), "time to live of lease table 'flights_leases': found 86400 s, allowed is -1"),
        (Service(allow_update=False), "updates of lease table 'flights_leases': found not allowed, they have to be"),
    ],
)
async def test_a_setting_with_which_no_worker_starts_is_named_and_stops_none(service: Service, says: str) -> None:
    found = await look(connected(service))

    problem = planned(found).problem
    assert problem is not None
    assert (problem.reason, problem.conditions, problem.stops_workers) == (
        Reason.LEASE_TABLE_UNUSABLE,
        ("TunnelReady",),
        False,
    )
    assert says in problem.message
    assert states(found) == {"s1": "OPEN", "s2": "OPEN"}


async def test_settings_are_looked_at_once_a_minute_and_in_each_look_while_they_are_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service()
    cache, loop, clock = connected(service), asyncio.get_running_loop(), 100.0
    monkeypatch.setattr(loop, "time", lambda: clock)

    async def unfit(seconds: float) -> bool:
        nonlocal clock
        clock = 100.0 + seconds
        found = await look(cache, stream_world(tunnel=UNREAD, now=NOW + seconds))
        assert isinstance(found.tunnel, Tunnel)
        return bool(found.tunnel.unfit)

    assert not await unfit(0)
    service.time_to_live = 86_400
    assert not await unfit(30)
    assert service.calls.count("DescribeTable") == 1
    assert await unfit(61)
    assert await unfit(76)
    service.time_to_live = -1
    assert not await unfit(91)
    assert service.calls.count("DescribeTable") == 4


async def test_a_table_that_came_anew_is_looked_at_again() -> None:
    service = Service()
    cache, leases = connected(service), service.leases_of
    await look(cache)
    service.leases_of = service_error("OTSObjectNotExist", "no table")
    await look(cache, stream_world(tunnel=UNREAD, now=NOW + SETTINGS.poll_seconds))
    service.leases_of, service.time_to_live = leases, 86_400

    found = await look(cache, stream_world(tunnel=UNREAD, now=NOW + 2 * SETTINGS.poll_seconds))

    assert isinstance(found.tunnel, Tunnel)
    assert "86400" in found.tunnel.unfit


async def test_a_busy_service_stops_no_worker_because_of_a_setting() -> None:
    found = await look(connected(Service(service_error("OTSServerBusy", "busy"), time_to_live=86_400)))

    assert isinstance(found.tunnel, Failure)
    assert not found.tunnel.problem.stops_workers


async def test_what_the_service_refuses_of_a_table_of_leases_is_told_as_it_is() -> None:
    found = await look(connected(Service(service_error("OTSQuotaExhausted", "too much"))))

    assert isinstance(found.tunnel, Failure)
    assert found.tunnel.problem.reason is Reason.SERVICE_REFUSED


async def test_an_endpoint_that_does_not_answer_is_no_missing_stream() -> None:
    found = await look(connected(Service(stream=ConnectError("refused"))))

    assert isinstance(found.tunnel, Failure)
    assert found.tunnel.problem.reason is Reason.ENDPOINT_UNREACHABLE


async def test_rows_that_are_no_leases_are_kept_for_the_conditions() -> None:
    found = await look(connected(Service(unreadable=(CodecError("key of a lease: found pk"),))))

    assert isinstance(found.tunnel, Tunnel)
    assert found.tunnel.faults == ("key of a lease: found pk",)


async def test_an_owner_of_another_program_is_foreign() -> None:
    found = await look(connected(Service([lease("s1"), lease("s2", WorkerId("java-1"))])))

    assert found.foreign_since == {"java-1": NOW}


async def test_an_owner_whose_counter_stands_still_for_the_duration_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    cache, loop, clock = connected(service), asyncio.get_running_loop(), 100.0
    monkeypatch.setattr(loop, "time", lambda: clock)
    await look(cache)

    service.leases_of, clock = [lease("s1", counter=2), lease("s2")], 161.0
    found = await look(cache, stream_world(tunnel=UNREAD, now=NOW + 61))

    assert states(found) == {"s1": "OPEN", "s2": "CLOSE"}


@pytest.mark.parametrize(
    ("checkpoint", "read", "until", "waits"),
    [
        (Position("i"), "read i", NOW - 300, True),
        (Position("empty"), "read empty", NOW - 2, False),
        (TRIM_HORIZON, "read oldest of s2", None, None),
    ],
)
async def test_a_record_is_read_at_the_checkpoint_where_no_worker_reports(
    checkpoint: Position, read: str, until: float | None, waits: bool | None
) -> None:
    service = Service([lease("s1"), lease("s2", checkpoint=checkpoint)], records={"i": NOW - 300})
    alone = stream_world(tunnel=UNREAD, pods=(stream_pod(report_channel("s1")),))

    found = await look(connected(service), alone)

    assert service.calls[3:][-1] == read
    assert found.peeks["s2"].is_of_lease
    if waits is not None:
        assert (found.peeks["s2"].empty, found.peeks["s2"].waits) == (until, waits)


@pytest.mark.parametrize("error", [service_error("OTSTrimmedDataAccess", "trimmed"), TunnelError("broken")])
async def test_a_record_that_cannot_be_read_leaves_the_owners_known(error: TunnelError) -> None:
    found = await look(connected(Service(read_error=error)), stream_world(tunnel=UNREAD, pods=()))

    assert states(found) == {"s1": "OPEN", "s2": "OPEN"}
    assert [peek.empty for peek in found.peeks.values()] == ([None, None] if isinstance(error, TunnelExpired) else [])


async def test_a_shard_that_is_read_to_its_end_is_not_read_again() -> None:
    service = Service([lease("s1", checkpoint=SHARD_END), lease("s2", checkpoint=SHARD_END)])

    found = await look(connected(service), stream_world(tunnel=UNREAD, pods=()))

    assert set(states(found).values()) == {"TERMINATED"}
    assert not [call for call in service.calls if call.startswith("read")]


async def test_an_object_that_may_sleep_has_every_shard_looked_at_in_its_intervals() -> None:
    """No worker's report tells that nothing waits beyond its checkpoint; a look does."""
    settings = {"mode": "Auto", "minReplicas": 0, "scaleToZero": {"enabled": True, "peekIntervalSeconds": 120}}
    status = stream_recorded(autoscaling={"desiredReplicas": 1, "specReplicas": 1})
    of = stream_resource(status, replicas=1, autoscaling=settings)
    history = History(idle=Idle(NOW - 3600, 0))
    service = Service()
    cache = connected(service)

    found = await look(cache, stream_world(of, tunnel=UNREAD, scaling=history))
    assert {shard: peek.waits for shard, peek in found.peeks.items()} == {"s1": False, "s2": False}

    service.calls.clear()
    await look(cache, stream_world(of, tunnel=UNREAD, scaling=history, now=NOW + 60))
    assert "DescribeStream" in service.calls
    assert not [call for call in service.calls if call.startswith("read")]

    await look(cache, stream_world(of, tunnel=UNREAD, scaling=history, now=NOW + 121))
    assert len([call for call in service.calls if call.startswith("read")]) == 2


async def test_a_shard_that_is_closed_and_read_needs_a_worker_that_stores_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service([lease("s1")])

    async def last(iterator: ShardIterator, *, limit: int) -> ShardPage:
        return ShardPage([], None, False, 1, NOW - 2)

    monkeypatch.setattr(service, "read", last)
    found = await look(connected(service), stream_world(tunnel=UNREAD, pods=()))

    assert found.peeks["s1"].waits


async def test_what_was_known_of_a_checkpoint_stays_when_its_records_are_trimmed() -> None:
    service = Service(records={"i": NOW - 300})
    cache = connected(service)
    await look(cache, stream_world(tunnel=UNREAD, pods=()))

    service.read_error = service_error("OTSTrimmedDataAccess", "trimmed")
    found = await look(cache, stream_world(tunnel=UNREAD, pods=(), now=NOW + SETTINGS.poll_seconds))

    assert [(peek.empty, peek.is_trimmed) for peek in found.peeks.values()] == [(NOW - 300, True)] * 2


async def test_the_oldest_record_of_a_shard_that_is_listed_is_lost_to_no_reader() -> None:
    service = Service([lease("s1", checkpoint=TRIM_HORIZON), lease("gone", checkpoint=TRIM_HORIZON)])
    service.read_error = service_error("OTSTrimmedDataAccess", "trimmed")

    found = await look(connected(service), stream_world(tunnel=UNREAD, pods=()))

    assert {shard: peek.is_trimmed for shard, peek in found.peeks.items()} == {"s1": False, "gone": True}


async def test_a_checkpoint_that_is_no_position_hides_no_other_shard() -> None:
    service = Service([lease("s1", checkpoint=Position("of another program")), lease("s2")], records={"i": NOW - 300})
    service.refused = "of another program"

    found = await look(connected(service), stream_world(tunnel=UNREAD, pods=()))

    assert {shard: peek.empty for shard, peek in found.peeks.items()} == {"s1": None, "s2": NOW - 300}


async def test_a_shard_that_cannot_be_read_keeps_no_other_from_being_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MOST", 1)
    service = Service([lease("s1", checkpoint=Position("b")), lease("s2")], records={"i": NOW - 300}, broken="b")
    cache, unowned = connected(service), stream_world(tunnel=UNREAD, pods=())

    found = await look(cache, unowned)
    assert found.peeks == {}
    assert "(broken)" in found.peek_failure

    cache.tunnel = None
    found = await look(cache, unowned)
    assert {shard: peek.empty for shard, peek in found.peeks.items()} == {"s2": NOW - 300}


async def test_a_look_that_has_failed_since_tells_no_lag_after_a_while() -> None:
    """It grew with the age of the look, and LagHigh asked for more workers."""
    service = Service(records={"i": NOW - 300})
    cache = connected(service)
    silent = (replace(stream_pod(), report=None),)

    async def after(seconds: float) -> dict[str, Any]:
        service.now = NOW + seconds
        return reported(await look(cache, stream_world(tunnel=UNREAD, pods=silent, now=service.now)))

    assert (await after(0))["lag"]["seconds"] == 300
    service.read_error = ConnectError("broken")
    assert (await after(600))["lag"]["seconds"] == 900
    unseen = await after(660)
    assert (unseen["lag"]["byCheckpoint"], unseen["lag"]["notLookedAt"]) == (0, 2)
    assert "seconds" not in unseen["lag"]
    (ready,) = (found for found in unseen["conditions"] if found["type"] == "Ready")
    assert ready["status"] == "Unknown"
    assert ready["message"].startswith("the lag is not known: spec.source.endpoint")
    assert "no answer (broken)" in ready["message"]
    # what the stream drops does not wait for a look
    assert unseen["lag"]["retentionUsedPercent"] == 0
    assert (await after(50_000))["lag"]["retentionUsedPercent"] == 50
    service.read_error = None
    assert (await after(50_060))["lag"]["seconds"] == 50_340


async def test_refusals_of_looks_that_differ_in_their_request_cause_no_write() -> None:
    service = Service(records={"i": NOW - 300})
    cache, silent = connected(service), (replace(stream_pod(), report=None),)

    async def after(seconds: float, request_id: str) -> dict[str, Any]:
        service.read_error = (
            service_error("OTSServerBusy", "Server is busy.", request_id=request_id) if seconds else None
        )
        return reported(await look(cache, stream_world(tunnel=UNREAD, pods=silent, now=NOW + seconds)))

    _, first, second = await after(0, ""), await after(800, "0005f001"), await after(860, "0005f002")

    (ready,) = (found for found in first["conditions"] if found["type"] == "Ready")
    assert "Server is busy." in ready["message"]
    assert not is_different(first, second)


async def test_a_look_that_has_failed_since_tells_the_lag_of_a_paused_object() -> None:
    """LagHigh ended by itself, although nobody read the shard."""
    service = Service(records={"i": NOW - 7200})
    cache, paused = connected(service), stream_resource(stream_recorded(), suspend=True)

    async def after(seconds: float) -> dict[str, Any]:
        of = stream_world(paused, tunnel=UNREAD, pods=(), children=deployment(0), now=NOW + seconds)
        return reported(await look(cache, of))

    await after(0)
    service.read_error = ConnectError("broken")

    assert (await after(3600))["lag"]["seconds"] == 10_800


async def test_a_service_that_does_not_answer_is_asked_for_few_shards() -> None:
    service = Service([lease(f"s{number}") for number in range(9)], read_error=ConnectError("broken"))

    found = await look(connected(service), stream_world(tunnel=UNREAD, pods=()))

    assert len([call for call in service.calls if call.startswith("read")]) == checkpoints.MOST_FAILURES
    assert found.peeks == {}
    assert "(broken)" in found.peek_failure


async def test_the_reason_of_a_look_that_failed_is_told_as_long_as_the_look_is_kept() -> None:
    cache = connected(Service(read_error=ConnectError("broken")))

    first = await look(cache, stream_world(tunnel=UNREAD, pods=()))
    kept = await look(cache, stream_world(tunnel=UNREAD, pods=(), now=NOW + 1))

    assert kept.tunnel is first.tunnel
    assert first.peek_failure == kept.peek_failure
    assert "no answer (broken)" in first.peek_failure
