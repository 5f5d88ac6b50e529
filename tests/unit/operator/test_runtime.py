"""Which events wake a loop, and which of two objects on one tunnel is older."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import generate_latest

from ots_tunnel.model import Credentials
from ots_tunnel_operator import names
from ots_tunnel_operator import runtime as runtime_module
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.concerns import Concerns, eldest
from ots_tunnel_operator.handlers import run_deletion, run_loop
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import DEPLOYMENT, SECRET, TUNNEL, Kind, Manifest
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime, elder_of
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.world import Competitor, RolloutTurn
from tests.support.kube.cluster_model import ClusterModel
from tests.support.operator.deletions import NAME, Service
from tests.support.operator.objects import EMULATOR, tunnel_object
from tests.support.operator.worlds import KEYS, NOW, SETTINGS, UID, recorded, resource
from tests.support.waiting import until

OLDER = Competitor("older", "shop", NOW - 2000, "f")
OLDEST = Competitor("oldest", "shop", NOW - 3000, "f")
YOUNGER = Competitor("younger", "shop", NOW, "0")
SAME_SECOND = Competitor("same-second", "shop", NOW - 1000, "0")
OURSELVES = Competitor("flights-copy", "default", NOW - 1000, UID)


@pytest.mark.parametrize(
    ("others", "elder"),
    [
        ([], None),
        ([OURSELVES], None),
        ([YOUNGER], None),
        ([YOUNGER, OLDER, OLDEST], OLDEST),
        # of two objects of one second the one with the smaller uid
        ([SAME_SECOND], SAME_SECOND),
    ],
)
def test_the_elder_of_two_objects_keeps_the_tunnel(others: list[Competitor], elder: Competitor | None) -> None:
    assert eldest(resource(), others) == elder


@pytest.mark.parametrize("status", [{}, {"conditions": [{"type": "Suspended", "status": "False"}]}], ids=["", "drains"])
@pytest.mark.parametrize(("suspend", "later"), [(True, True), (False, False)])
def test_the_way_back_of_a_suspended_copy_is_known_and_stops_nothing_yet(
    suspend: bool, later: bool, status: dict[str, Any]
) -> None:
    concerns = Concerns()
    tables = {"source__instance": "shop", "sink__tablestore__instance": "shop"}
    there = tunnel_object("there", **tables, source__table="x", sink__tablestore__table="y")
    back = tunnel_object("back", **tables, source__table="y", sink__tablestore__table="x", suspend=suspend)
    back["status"] = status
    for uid, body in (("1", there), ("2", back)):
        body["metadata"] |= {"namespace": "shop", "uid": uid}
        concerns.changed(body)

    found = elder_of(Resource(TablestoreTunnel.from_body(back | {"status": {}}), {}), concerns)

    assert found is not None
    assert (found.way_back, found.later) == (("shop/there",), later)


async def test_a_wake_reaches_the_loop_of_the_name_alone() -> None:
    runtime = Runtime(SETTINGS, OperatorMetrics())
    ours, other = runtime.cache(UID, "default", "flights-copy"), runtime.cache("1", "default", "other")

    runtime.wake([("default", "flights-copy"), ("default", "unknown")])

    assert (ours.wake.is_set(), other.wake.is_set()) == (True, False)


async def test_a_deletion_that_comes_late_leaves_the_wakes_to_the_object_that_was_applied_again() -> None:
    async with Scene() as scene:
        # the loop of the object that was applied again has begun before the deletion of the one that is gone
        scene.create("copy", "2")
        await scene.settle()
        scene.runtime.deleted_cache("1").forgotten = True
        await run_deletion(scene.runtime, "default", "copy", "1")

        assert await scene.woken(lambda: scene.runtime.wake([("default", "copy")])) == {"copy"}


def test_handlers_need_a_connection() -> None:
    with pytest.raises(RuntimeError, match="not connected"):
        Runtime(SETTINGS, OperatorMetrics()).deleter()


class Scene:
    """A runtime whose watches read a model, with one loop per object."""

    def __init__(self, model: ClusterModel | None = None) -> None:
        self.model = model or ClusterModel()
        self.runtime = Runtime(replace(SETTINGS, wait_seconds=0.0), OperatorMetrics())
        self.caches: dict[str, LoopCache] = {}

    async def __aenter__(self) -> Scene:
        await self.runtime.open(self.model)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runtime.close()

    def create(
        self, name: str, uid: str, tunnel: str = "t", secret: str = "keys", *, deleted: Mapping[str, Any] | None = None
    ) -> None:
        """Create an object; one that is being deleted has the status `deleted`."""
        spec = {"source__tunnel__name": tunnel, "source__credentials__secretRef__name": secret}
        body = tunnel_object(name, **spec, sink={"stdout": {}}, deletionPolicy="Delete" if deleted else "Retain")
        body["metadata"] |= {"uid": uid, "generation": 1, "namespace": "default"}
        if deleted:
            body["status"] = deleted
            body["metadata"] |= {"deletionTimestamp": timestamp(time.time()), "finalizers": [names.FINALIZER]}
        self.model.put(TUNNEL, body)
        self.caches[name] = self.runtime.cache(uid, "default", name)

    async def woken(self, change: Callable[[], object]) -> set[str]:
        """Names of the objects that a change wakes."""
        await self.settle()
        for cache in self.caches.values():
            cache.wake.clear()
        change()
        await self.settle()
        return {name for name, cache in self.caches.items() if cache.wake.is_set()}

    async def settle(self) -> None:
        with contextlib.suppress(KubeError):
            for kind, name in ((TUNNEL, "any"), (DEPLOYMENT, "any"), (SECRET, "keys")):
                await self.runtime.reader.get(kind, "default", name)
        for _ in range(20):
            await asyncio.sleep(0)


def child(of: str) -> dict[str, object]:
    labels = {names.LABEL_NAME: of, names.LABEL_ROLE: names.ROLE_WORKER}
    return {"metadata": {"name": of, "namespace": "default", "labels": labels}}


async def test_the_statuses_of_all_objects_tell_whose_turn_it_is() -> None:
    async with Scene() as scene:
        scene.create("a", "1")
        scene.create("b", "2")
        rolls = {"type": "Progressing", "status": "True", "reason": "RollingWorkers", "lastTransitionTime": "t"}
        body = copy.deepcopy(scene.model.objects[TUNNEL, "default", "b"])
        await scene.settle()
        scene.model.put(TUNNEL, body | {"status": {"conditions": [rolls]}})
        await scene.settle()
        reconciler = scene.runtime.reconciler()

        assert scene.runtime.turn(resource()) == RolloutTurn(rolling=1)
        assert reconciler is scene.runtime.reconciler()
        scene.model.remove(TUNNEL, "default", "b")
        await scene.settle()
        assert scene.runtime.turn(resource()) == RolloutTurn()


async def test_an_event_wakes_only_the_objects_that_it_concerns() -> None:
    async with Scene() as scene:
        scene.create("a", "1", tunnel="shared")
        scene.create("b", "2", tunnel="shared", secret="other")
        scene.create("c", "3")
        edited = copy.deepcopy(scene.model.objects[TUNNEL, "default", "c"])
        edited["metadata"]["generation"] = 2
        written = copy.deepcopy(edited) | {"status": {"phase": "Streaming"}}

        assert await scene.woken(lambda: scene.model.put(TUNNEL, edited)) == {"c"}
        assert await scene.woken(lambda: scene.model.put(TUNNEL, written)) == set()
        assert await scene.woken(lambda: scene.model.put(DEPLOYMENT, child("b"))) == {"b"}
        keys = {"metadata": {"name": "keys", "namespace": "default"}}
        assert await scene.woken(lambda: scene.model.put(SECRET, keys)) == {"a", "c"}
        # the other object on the same tunnel takes over; the loop of the deleted one ends
        assert await scene.woken(lambda: scene.model.remove(TUNNEL, "default", "a")) == {"a", "b"}


async def test_an_elder_object_whose_deletion_no_watch_delivers_does_not_block_the_younger_one() -> None:
    async with Scene() as scene:
        scene.create("elder", "1", tunnel="shared")
        scene.create("younger", "2", tunnel="shared")
        await scene.settle()
        younger = Resource(TablestoreTunnel.from_body(scene.model.objects[TUNNEL, "default", "younger"]), {})
        assert scene.runtime.elder(younger) is not None

        woken = await scene.woken(lambda: scene.model.lose(TUNNEL, "default", "elder"))

        assert "younger" in woken
        assert scene.runtime.elder(younger) is None


async def test_the_first_passes_of_many_objects_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    for number in range(100):
        scene.create(f"object-{number}", str(number))
    async with scene:
        # known at once: kopf starts the loops of all objects in one moment
        pauses = [scene.runtime.first_pause("default", "object-0") for _ in range(200)]
        monkeypatch.setattr(runtime_module, "START_SECONDS", 0.0)
        later = scene.runtime.first_pause("default", "object-0")

    assert 0 <= min(pauses) < 1
    assert 2 < max(pauses) <= 3
    assert later == 0.0


@pytest.mark.parametrize(("seen", "is_spread"), [(None, True), (1, True), (0, False)])
async def test_an_object_that_was_edited_while_no_operator_looked_does_not_wait(
    seen: int | None, is_spread: bool
) -> None:
    scene = Scene()
    for number in range(100):
        scene.create(f"object-{number}", str(number))
    edited = copy.deepcopy(scene.model.objects[TUNNEL, "default", "object-0"])
    edited["metadata"]["generation"] = 2 if seen == 0 else 1
    scene.model.put(TUNNEL, edited | {"status": {} if seen is None else {"observedGeneration": 1}})

    async with scene:
        pauses = [scene.runtime.first_pause("default", "object-0") for _ in range(20)]

    assert any(pauses) == is_spread


async def test_what_is_served_is_read_from_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Runtime(SETTINGS, OperatorMetrics())
    assert closed.served() == []
    with pytest.raises(KubeError, match="does not watch its objects yet"):
        await closed.vouch()

    scene = Scene()
    scene.create("a", "1")
    async with scene:
        await scene.runtime.vouch()
        scene.runtime.cache("1", "default", "a")
        scene.model.fail(KubeError(403, "Forbidden", "may not"))
        await scene.settle()

        # what is known stays, and nothing vouches for it
        assert [(body["metadata"]["name"], cache) for body, cache in scene.runtime.served()] == [
            ("a", scene.caches["a"])
        ]
        with pytest.raises(KubeError, match="may not"):
            await scene.runtime.vouch()


async def test_an_operator_starts_while_the_api_server_refuses_it() -> None:
    scene = Scene()
    scene.model.fail(KubeError(403, "Forbidden", "may not"))
    async with scene:
        assert scene.runtime.first_pause("default", "a") == 0.0


async def test_a_refused_watch_wakes_whom_it_concerns(caplog: pytest.LogCaptureFixture) -> None:
    async with Scene() as scene:
        scene.create("a", "1")
        scene.create("b", "2")

        refused = KubeError(403, "Forbidden", "may not")
        assert await scene.woken(lambda: scene.model.fail(refused)) == {"a", "b"}
        assert {vars(record)["action"] for record in caplog.records} == {"watch_refused"}


async def test_what_a_pass_calls_by_is_closed_only_after_the_pass() -> None:
    runtime = Runtime(SETTINGS, OperatorMetrics())
    cache = runtime.cache(UID, "default", "flights-copy")
    closed: list[str] = []

    class Clients:
        """Clients of an instance that tell when they are closed."""

        endpoint, instance, credentials = "http://127.0.0.1", "demo", None

        async def close(self) -> None:
            closed.append("closed")

    cache.source.instance = Clients()
    async with cache.lock:
        forgetting = asyncio.create_task(runtime.forget(UID, "default", "flights-copy"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert (closed, cache.forgotten) == ([], True)
    await forgetting

    assert closed == ["closed"]
    assert cache.source.instance is None


class Slow(ClusterModel):
    """A cluster in which a person takes the object's finalizer away while a read of its Secret waits for an answer."""

    hangs = False

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        if kind is SECRET and self.hangs:
            self.remove(TUNNEL, "default", "copy")
            for _ in range(50):
                await asyncio.sleep(0)
        return await super().get(kind, namespace, name)


async def test_a_deletion_that_hangs_leaves_no_sample_of_an_object_that_is_gone() -> None:
    model = Slow()
    async with Scene(model) as scene:
        scene.create("copy", "1", deleted=recorded())
        await scene.settle()
        model.hangs = True
        await run_deletion(scene.runtime, "default", "copy", "1")

    assert 'name="copy"' not in generate_latest(scene.runtime.metrics.registry).decode()


@pytest.mark.parametrize(("other", "deleted"), [("0", []), ("2", ["flights-copy"])], ids=["elder", "younger"])
async def test_the_deletion_of_an_object_spares_the_tunnel_of_an_elder_one(other: str, deleted: list[str]) -> None:
    service = Service()
    place = {"endpoint": EMULATOR, "instance": "demo", "credentials": KEYS}
    instance = SimpleNamespace(**place, tunnels=service, before_write=None, close=lambda: asyncio.sleep(0))
    async with Scene() as scene:
        scene.create("other", other, NAME)
        scene.create("copy", "1", NAME, deleted=recorded())
        source = scene.caches["copy"].source
        source.credentials, source.instance = KEYS, cast(Instance, instance)
        await scene.settle()

        await run_deletion(scene.runtime, "default", "copy", "1")

    assert service.deleted == deleted


async def test_the_end_of_a_deletion_leaves_the_samples_of_a_successor() -> None:
    metrics = OperatorMetrics()
    runtime = Runtime(SETTINGS, metrics)
    runtime.cache("1", "default", "copy")
    runtime.cache("2", "default", "copy")
    metrics.observed("default", "copy", {"phase": "Streaming"})

    await runtime.forget("1", "default", "copy")

    assert "Streaming" in generate_latest(metrics.registry).decode()


async def test_the_end_of_a_deletion_removes_samples_that_came_after_the_object_had_gone() -> None:
    metrics = OperatorMetrics()
    runtime = Runtime(SETTINGS, metrics)
    runtime.cache("1", "default", "copy")
    await runtime.forget("1", "default", "copy")
    metrics.observed("default", "copy", {"phase": "Streaming"})

    await runtime.forget("1", "default", "copy")

    assert "Streaming" not in generate_latest(metrics.registry).decode()


@pytest.mark.parametrize("successor", [False, True])
async def test_what_a_cancelled_pass_has_shown_goes_with_its_object(successor: bool) -> None:
    metrics = OperatorMetrics()
    runtime = Runtime(SETTINGS, metrics)
    cache = runtime.cache("1", "default", "copy")
    async with cache.lock:
        forgetting = asyncio.create_task(runtime.forget("1", "default", "copy"))
        await asyncio.sleep(0)
        metrics.observed("default", "copy", {"phase": "Streaming"})
        if successor:
            runtime.cache("2", "default", "copy")

    await forgetting

    assert ("Streaming" in generate_latest(metrics.registry).decode()) is successor


@dataclass
class Client:
    """Stands for the clients of an instance; calls must not follow its end."""

    endpoint: str = "http://source"
    instance: str = "demo"
    credentials: Credentials = KEYS
    closed: bool = False

    async def close(self) -> None:
        self.closed = True


def with_client(runtime: Runtime, uid: str) -> tuple[LoopCache, Client]:
    cache, client = runtime.cache(uid, "default", f"object-{uid}"), Client()
    cache.source.instance = cast(Instance, client)
    return cache, client


async def test_a_pass_under_way_keeps_its_clients_until_it_ends() -> None:
    runtime, model = Runtime(SETTINGS, OperatorMetrics()), ClusterModel()
    await runtime.open(model)
    (busy, used), (_, idle) = with_client(runtime, "1"), with_client(runtime, "2")

    async with busy.lock:
        closing = asyncio.create_task(runtime.close())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not used.closed
    await closing

    assert (used.closed, idle.closed) == (True, True)


async def test_no_pass_begins_while_the_operator_closes() -> None:
    scene = Scene()
    scene.create("a", "1")
    await scene.runtime.open(scene.model)
    reconciler, cache = scene.runtime.reconciler(), scene.caches["a"]

    async with cache.lock:
        closing = asyncio.create_task(scene.runtime.close())
        await asyncio.sleep(0)
        late = asyncio.create_task(reconciler.step("default", "a", cache))
        await asyncio.sleep(0)
    await closing

    _, waiting = await asyncio.wait([late], timeout=0.05)
    assert waiting == {late}
    assert cache.source.instance is None
    late.cancel()
    with pytest.raises(RuntimeError, match="not connected"):
        scene.runtime.deleter()


async def test_what_a_pass_that_never_ends_uses_stays_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runtime_module, "CLOSE_SECONDS", 0.01)
    runtime = Runtime(SETTINGS, OperatorMetrics())
    await runtime.open(ClusterModel())
    (busy, used), (_, idle) = with_client(runtime, "1"), with_client(runtime, "2")

    async with busy.lock:
        await runtime.close()
        assert (used.closed, idle.closed) == (False, True)
    assert [vars(record)["action"] for record in caplog.records] == ["close_incomplete"]


async def test_an_object_that_goes_while_the_operator_closes_gives_its_clients_back() -> None:
    scene = Scene()
    scene.create("a", "1")
    await scene.runtime.open(scene.model)
    await scene.settle()
    cache, client = scene.caches["a"], Client()
    cache.source.instance = cast(Instance, client)

    async with cache.lock:
        scene.model.remove(TUNNEL, "default", "a")
        await scene.settle()
        closing = asyncio.create_task(scene.runtime.close())
        await asyncio.sleep(0)
        assert not client.closed
    await closing

    assert client.closed


async def test_the_liveness_probe_waits_for_no_pass_of_a_loop_that_was_cancelled() -> None:
    """kopf begins a loop late, when the object is gone, and cancels it; or it cancels one before its last pass."""
    async with Scene() as scene:
        metrics = scene.runtime.metrics
        loop = asyncio.create_task(run_loop(scene.runtime, "default", "gone", "1"))
        await until(lambda: metrics.oldest_pass() > 0)
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)

        assert metrics.oldest_pass() == 0


async def test_the_end_of_a_loop_says_nothing_of_a_successor() -> None:
    async with Scene() as scene:
        loop = asyncio.create_task(run_loop(scene.runtime, "default", "a", "1"))
        await until(lambda: scene.runtime.metrics.oldest_pass() > 0)
        scene.create("a", "2")
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)

        assert scene.runtime.metrics.oldest_pass() > 0
