"""The calls that a pass makes and their times; failures of one object do not affect another."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.client.table_calls import StreamDescription, TableDescription
from ots_tunnel.errors import ConnectError, PossibleGap, TunnelError
from ots_tunnel.model import Stage, TunnelDescription
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel_operator.assess.observed import find_unobserved
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.kinds import Kind
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe import tunnel as tunnel_module
from ots_tunnel_operator.observe.observer import Observer
from ots_tunnel_operator.observe.tunnel import TunnelObserver
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.turns.calls import Calls
from ots_tunnel_operator.turns.queue import NoTurn, Patience
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.objects import EMULATOR
from tests.support.operator.query_worlds import query_resource
from tests.support.operator.worlds import (
    COPY,
    KEYS,
    NOW,
    SCHEMA,
    SETTINGS,
    UID,
    channel,
    description,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

RUNNING = description(channel("c1", consumed=NOW - 5))


class OneSecret:
    """An API server that has the Secret and nothing else."""

    def __init__(self, version: str = "") -> None:
        self.version, self.reads = version, 0

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        values = {"accessKeyId": KEYS.access_key_id, "accessKeySecret": KEYS.access_key_secret}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        self.reads += kind.kind == "Secret"
        return {"data": data} if kind.kind == "Secret" else None

    async def stored_version(self, kind: Kind, namespace: str, name: str) -> str:
        return self.version if kind.kind == "Secret" else ""

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[dict[str, Any]]:
        return []


@dataclass
class Service:
    """One instance, for all three clients; counts the calls by name."""

    answer: TunnelDescription | TunnelError = RUNNING
    table: TunnelError | None = None
    retention_hours: int = 24
    calls: list[str] = field(default_factory=list)

    async def describe_tunnel(self, table: str, name: str) -> TunnelDescription:
        self.calls.append("DescribeTunnel")
        if isinstance(self.answer, TunnelError):
            raise self.answer
        return self.answer

    async def get_checkpoint(self, *_: Any) -> Any:
        raise ConnectError("nobody looks without a client here")

    async def describe_table(self, table: str) -> Any:
        self.calls.append("DescribeTable")
        if self.table is not None:
            raise self.table
        schema = COPY if table == COPY.name else SCHEMA
        stream = StreamDescription(enabled=True, expiration_hours=self.retention_hours)
        return TableDescription(schema.name, schema.keys, schema.ttl_seconds, schema.max_versions, 86_400, stream)

    async def close(self) -> None:
        pass


def connected_cache(service: Service, *, tables: bool = True) -> LoopCache:
    """A loop's cache in which both ends are connected to the service."""
    cache = LoopCache()
    for side, schema in ((cache.source, SCHEMA), (cache.sink, COPY)):
        instance = SimpleNamespace(
            endpoint=EMULATOR,
            instance="demo",
            credentials=KEYS,
            tunnels=service,
            rows=service,
            tables=service,
            calls=Calls(),
            close=service.close,
        )
        side.instance = cast(Instance, instance)
        if tables:
            side.table, side.table_name = Table(schema), schema.name
            side.table_time = side.look_time = NOW
    return cache


async def observe(
    cache: LoopCache, now: float = NOW, of: Resource | None = None, kube: OneSecret | None = None
) -> World:
    observer = Observer(cast(Kube, kube or OneSecret()), cast(Any, None), SETTINGS)
    return await observer.observe(of or resource(recorded()), cache, elder=None, now=now)


class OnePod(OneSecret):
    """An API server that has a pod, too: one that is older than the object, and ended because of a possible gap."""

    async def list(self, kind: Kind, namespace: str, selector: str) -> list[dict[str, Any]]:
        gap = PossibleGap("channel-of-the-former-tunnel", NOW - 900_000, NOW - 800_000)
        ended = {"terminated": {"exitCode": 14, "message": str(gap)}}
        pod = {
            "metadata": {"name": "old", "creationTimestamp": timestamp(NOW - 4600)},
            "status": {"phase": "Failed", "containerStatuses": [{"name": "worker", "state": ended, "lastState": {}}]},
        }
        return [pod] if kind.kind == "Pod" else []


async def test_the_gap_that_a_pod_of_a_former_object_ended_with_is_not_this_objects() -> None:
    observer = Observer(cast(Kube, OnePod()), cast(Any, None), SETTINGS)
    world = await observer.observe(resource(recorded()), connected_cache(Service()), elder=None, now=NOW)

    assert len(world.pods) == 1
    assert "possibleGaps" not in reported(world)


async def test_an_elder_object_that_this_one_would_wait_for_later_keeps_it_from_no_look() -> None:
    observer = Observer(cast(Kube, OneSecret()), cast(Any, None), SETTINGS)
    elder = Competitor("flights-back", "default", NOW - 9, "elder", ("default/flights-back",), later=True)

    world = await observer.observe(resource(recorded()), connected_cache(Service()), elder=elder, now=NOW)

    assert (world.elder, world.later_elder) == (None, elder)
    assert isinstance(world.tunnel, Tunnel)


async def test_a_burst_of_events_describes_the_tunnel_once_a_poll() -> None:
    service = Service()
    cache = connected_cache(service)

    seen = [(await observe(cache, NOW + later)).tunnel for later in (0.0, 1.0, 14.9)]

    assert seen == [Tunnel(RUNNING, same_since=NOW, seen=NOW)] * 3
    assert service.calls == ["DescribeTunnel"]
    await observe(cache, NOW + SETTINGS.poll_seconds)
    assert service.calls == ["DescribeTunnel"] * 2


async def test_a_picture_of_the_channels_lasts_until_a_look_fails_or_finds_another_one() -> None:
    service = Service()
    cache = connected_cache(service)
    poll = SETTINGS.poll_seconds
    moved = description(channel("c1", client="01234567-pod-2", consumed=NOW - 5))

    async def since(number: int, answer: TunnelDescription | TunnelError) -> float | None:
        service.answer = answer
        side, cache.source = cache.source, connected_cache(service).source
        cache.source.table_time = cache.source.look_time = NOW + number * poll
        await side.close()
        found = (await observe(cache, NOW + number * poll)).tunnel
        return found.same_since if isinstance(found, Tunnel) else None

    looks = (RUNNING, RUNNING, ConnectError("no answer"), RUNNING, RUNNING, moved)
    seen = [await since(number, answer) for number, answer in enumerate(looks)]

    assert seen == [NOW, NOW, None, NOW + 3 * poll, NOW + 3 * poll, NOW + 5 * poll]


async def test_the_reading_of_a_worker_is_remembered_while_the_tunnel_lists_its_channel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = connected_cache(Service())
    reports: list[tuple[Pod, ...]] = [
        (pod("pod-1", report_channel("c1", consumed_up_to=NOW - 9), report_channel("gone", consumed_up_to=NOW)),),
        (pod("pod-1", report_channel("c1", consumed_up_to=None)),),
        (),
    ]

    async def scrape(*_: Any, **__: Any) -> tuple[Pod, ...]:
        return reports.pop(0)

    monkeypatch.setattr("ots_tunnel_operator.observe.observer.scrape", scrape)
    for _ in range(2):
        await observe(cache)

    assert (await observe(cache)).consumed_until == {"c1": NOW - 9}


async def test_the_reading_of_a_worker_tells_nothing_about_another_tunnel_on_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The channels of both are the shards of the stream, and so have the same ids."""
    cache = connected_cache(Service())
    reports: list[tuple[Pod, ...]] = [(pod("pod-1", report_channel("c1", consumed_up_to=NOW - 9)),), ()]

    async def scrape(*_: Any, **__: Any) -> tuple[Pod, ...]:
        return reports.pop(0)

    monkeypatch.setattr("ots_tunnel_operator.observe.observer.scrape", scrape)
    await observe(cache)
    another = recorded(tunnel={"id": "99999999-2222-3333-4444-555555555555", "createdByOperator": True})

    assert (await observe(cache, of=resource(another))).consumed_until == {}


async def test_a_cached_table_is_that_of_the_name_in_the_spec() -> None:
    service = Service()
    cache = connected_cache(service)
    cache.source.table_name = "another"

    await observe(cache)

    assert service.calls == ["DescribeTable", "DescribeTunnel"]
    assert cache.source.table_name == "flights"


async def test_a_cached_tunnel_is_that_of_the_place_in_the_spec() -> None:
    service = Service()
    cache = connected_cache(service)
    await observe(cache)
    cache.tunnel_of = cache.tunnel_of._replace(table="another") if cache.tunnel_of is not None else None

    await observe(cache, NOW + 1)

    assert service.calls == ["DescribeTunnel"] * 2


async def test_the_age_of_a_foreign_client_counts_from_its_first_sighting() -> None:
    cache = connected_cache(Service(description(channel("c1", client="else-1", consumed=NOW - 5))))

    async def seen_for(later: float) -> float:
        world = await observe(cache, NOW + later)
        return world.now - world.foreign_since["else-1"]

    assert [await seen_for(later) for later in (0.0, 10.0, 20.0, 30.0)] == [0.0, 0.0, 20.0, 20.0]


@pytest.mark.parametrize(
    ("answer", "status"), [(description(stage=Stage.INIT), recorded()), (RUNNING, recorded(tunnel={"id": "another"}))]
)
async def test_a_tunnel_that_is_waited_for_is_described_in_every_pass(
    answer: TunnelDescription, status: dict[str, Any]
) -> None:
    service = Service(answer)
    cache = connected_cache(service)

    for later in (0.0, 1.0):
        await observe(cache, NOW + later, resource(status))

    assert service.calls == ["DescribeTunnel"] * 2


def finished_worker() -> Pod:
    """A worker that reports completed."""
    found = pod("pod-1")
    assert found.report is not None
    return replace(found, report=replace(found.report, completed=True))


async def test_completion_is_never_decided_by_a_description_older_than_the_reports() -> None:
    service = Service()
    cache = connected_cache(service)
    ended = {"startFrom": "Latest", "endTime": timestamp(NOW - 60)}
    of = resource(recorded(), source__tunnel__type="Stream", source__tunnel__stream=ended)

    # a worker that reports completed costs a call, whatever the operator's clock says
    for pods in ((finished_worker(),), (finished_worker(),), (pod("pod-1"),)):
        await TunnelObserver(SETTINGS).observe(world(of, pods=pods, tunnel=Unread()), cache, Patience())

    assert service.calls == ["DescribeTunnel"] * 2


async def test_without_an_end_time_a_finished_worker_costs_no_calls() -> None:
    service = Service()
    cache = connected_cache(service)
    of = resource(recorded(), source__tunnel__type="Stream", source__tunnel__stream={"startFrom": "Latest"})

    for _ in range(3):
        await TunnelObserver(SETTINGS).observe(world(of, pods=(finished_worker(),), tunnel=Unread()), cache, Patience())

    assert service.calls == ["DescribeTunnel"]


async def test_an_endpoint_that_does_not_answer_is_a_failure_of_both_ends() -> None:
    world = await observe(connected_cache(Service(table=ConnectError("refused")), tables=False))

    assert isinstance(world.source, Failure)
    assert isinstance(world.destination, Failure)


class LongQueue(Calls):
    """Calls whose turn does not come."""

    async def make(self, *_: Any, **__: Any) -> Any:
        raise NoTurn("no turn")


@pytest.mark.parametrize("later", [0.0, SETTINGS.look_seconds, SETTINGS.refresh_seconds])
async def test_a_long_queue_is_told_as_one_and_makes_nothing_unknown_that_was_read_before(later: float) -> None:
    cache = connected_cache(Service())
    for side in (cache.source, cache.sink):
        assert side.instance is not None
        side.instance.calls = LongQueue(asyncio.Semaphore(4))
        side.credentials = KEYS
    tables = cache.source.table, cache.sink.table

    found = find_unobserved(await observe(cache, NOW + later))

    assert found is not None
    assert found.reason is Reason.INSTANCE_BUSY
    assert "the queue of the operator's calls to this instance is long" in found.message
    assert (cache.source.table, cache.sink.table) == tables
    assert cache.source.credentials == cache.sink.credentials == KEYS


async def test_both_ends_are_asked_at_the_same_time() -> None:
    class Slow(Service):
        both = asyncio.Event()

        async def describe_table(self, table: str) -> Any:
            if self.calls:
                self.both.set()
            self.calls.append("DescribeTable")
            await asyncio.wait_for(self.both.wait(), 10)
            raise ConnectError("refused")

    world = await observe(connected_cache(Slow(), tables=False))

    assert isinstance(world.source, Failure)
    assert isinstance(world.destination, Failure)
    assert "refused" in world.destination.problem.message


async def test_keys_are_read_again_after_an_authentication_error() -> None:
    service = Service(service_error("OTSAuthFailed", "no", http_status=403))
    cache = connected_cache(service)

    assert isinstance((await observe(cache)).tunnel, Failure)

    assert cache.source.credentials is None


async def test_a_cached_table_is_claimed_no_longer_than_since_the_last_look() -> None:
    service = Service()
    cache = connected_cache(service)

    for later in (0.0, SETTINGS.look_seconds - 1, SETTINGS.look_seconds):
        assert isinstance((await observe(cache, NOW + later)).destination, Table)
    assert service.calls.count("DescribeTable") == 2
    service.table = service_error("OTSObjectNotExist", "gone", http_status=404)
    gone = await observe(cache, NOW + 2 * SETTINGS.look_seconds)

    assert isinstance(gone.destination, Missing)
    assert isinstance(gone.source, Missing)


async def test_a_longer_retention_is_known_from_the_next_look_on() -> None:
    service = Service()
    cache = connected_cache(service)
    await observe(cache)
    service.retention_hours = 168

    found = await observe(cache, NOW + SETTINGS.look_seconds)

    assert isinstance(found.source, Table)
    assert found.source.stream_retention_seconds == 168 * 3600


@pytest.mark.parametrize(("accepted", "hours"), [(False, 168), (True, 24)])
async def test_while_a_gap_is_recorded_each_look_is_at_the_table_itself(accepted: bool, hours: int) -> None:
    """With a longer retention a worker that starts would read on behind it, and notice nothing."""
    service = Service()
    cache = connected_cache(service)
    gap = {"channel": "c1", "from": timestamp(NOW - 900_000), "to": timestamp(NOW - 800_000), "foundBy": "Operator"}
    of = resource(recorded(possibleGaps=[gap | {"accepted": accepted}]))
    await observe(cache, NOW + SETTINGS.look_seconds, of=of)
    service.retention_hours = 168

    found = await observe(cache, NOW + SETTINGS.look_seconds + 1, of=of)

    assert isinstance(found.source, Table)
    assert found.source.stream_retention_seconds == hours * 3600


@pytest.mark.parametrize(
    ("owner", "labelled", "is_ours"),
    [(UID, False, True), ("predecessor", True, False), (None, True, True), (None, False, False)],
    ids=["ours", "of a deleted object of the name", "retained", "somebody else's"],
)
@pytest.mark.parametrize("kind", ["Deployment", "SparkApplication", "ConfigMap"])
async def test_children_of_others_are_not_observed_as_ours(
    kind: str, owner: str | None, labelled: bool, is_ours: bool
) -> None:
    role = "worker" if kind == "Deployment" else "snapshot"
    found = {
        "metadata": {
            "labels": {"ots-tunnel.dev/name": "flights-copy", "ots-tunnel.dev/role": role} if labelled else {},
            "ownerReferences": [{"kind": "TablestoreTunnel", "name": "flights-copy", "uid": owner}] if owner else [],
        }
    }

    class Children(OneSecret):
        async def get(self, wanted: Kind, namespace: str, name: str) -> dict[str, Any] | None:
            return found if wanted.kind == kind else await super().get(wanted, namespace, name)

    observer = Observer(cast(Kube, Children()), cast(Any, None), SETTINGS)
    of = resource(recorded(), engine__baseData="Spark")
    # with an elder object no instance is asked
    elder = Competitor("flights-elder", "default", NOW - 9, "elder")
    seen = await observer.observe(of, LoopCache(), elder=elder, now=NOW)

    assert bool(seen.children) == is_ours


async def test_a_secret_is_read_again_after_a_change_and_after_a_failed_call_alone() -> None:
    service, kube = Service(), OneSecret("7")
    cache = connected_cache(service)

    for later in (0.0, 15.0, 30.0):
        await observe(cache, NOW + later, kube=kube)
    # one for each side
    assert kube.reads == 2

    kube.version = "8"
    await observe(cache, NOW + 45.0, kube=kube)
    assert kube.reads == 4

    service.answer = service_error("OTSAuthFailed", "no", http_status=403)
    for later in (60.0, 75.0):
        await observe(cache, NOW + later, kube=kube)
    assert kube.reads == 5


async def test_a_suspended_object_is_described_anew_until_the_last_worker_has_handed_back_its_channels() -> None:
    service = Service()
    cache, of = connected_cache(service), resource(recorded(), suspend=True)

    await observe(cache, NOW, of)
    service.answer = description(channel("c1", client="", consumed=NOW - 5))
    await observe(cache, NOW + 1.0, of)
    assert service.calls == ["DescribeTunnel"] * 2
    await observe(cache, NOW + 2.0, of)

    assert service.calls.count("DescribeTunnel") == 2


async def test_a_tunnel_of_more_channels_than_any_table_has_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnel_module, "MAX_CHANNELS", 1)
    cache = connected_cache(Service(description(channel("c1"), channel("c2"))))

    found = (await observe(cache)).tunnel

    assert isinstance(found, Failure)
    assert "found 2 channels, allowed are 1" in found.problem.message
    assert cache.tunnel is None


@pytest.mark.parametrize(("name", "role"), [("flights-copy-snapshot", "snapshot"), ("flights-copy-stream", "stream")])
async def test_the_application_and_the_pods_that_are_looked_at_are_those_of_the_engine(name: str, role: str) -> None:
    labels = {"ots-tunnel.dev/name": "flights-copy", "ots-tunnel.dev/role": role}
    owner = [{"kind": "TablestoreTunnel", "name": "flights-copy", "uid": UID}]

    class Children(OneSecret):
        async def get(self, wanted: Kind, namespace: str, found: str) -> dict[str, Any] | None:
            if (wanted.kind, found) == ("SparkApplication", name):
                return {"metadata": {"labels": labels, "ownerReferences": owner}}
            return await super().get(wanted, namespace, found)

        async def list(self, wanted: Kind, namespace: str, selector: str) -> list[dict[str, Any]]:
            is_of_spark = selector == f"sparkoperator.k8s.io/app-name={name}"
            return [{"metadata": {"name": f"{name}-driver"}, "status": {"phase": "Running"}}] if is_of_spark else []

    of = query_resource() if role == "stream" else resource(recorded(), engine__baseData="Spark")
    elder = Competitor("flights-elder", "default", NOW - 9, "elder")
    observer = Observer(cast(Kube, Children()), cast(Any, None), SETTINGS)
    seen = await observer.observe(of, LoopCache(), elder=elder, now=NOW)

    assert ("SparkApplication", name) in seen.children
    pods = {"snapshot": seen.spark_pods, "stream": seen.query_pods}
    assert {kind: [pod.name for pod in found] for kind, found in pods.items()} == {
        "snapshot": [],
        "stream": [],
        role: [f"{name}-driver"],
    }
