"""What the console answers: as the leader, on a replica that stands by, and while something does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ots_tunnel_operator.console import console as console_module
from ots_tunnel_operator.console.console import Console, StandsStill
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.server import Health
from tests.support.operator.console_fleet import ListedFleet, looked_at, many
from tests.support.operator.plugin_objects import body, unreachable
from tests.support.waiting import until

LEASE = "ots-tunnel-system/ots-tunnel-operator"
PLACE = ("shop", "orders-copy")


@pytest.fixture
def health() -> Health:
    return Health(OperatorMetrics())


@asynccontextmanager
async def following(health: Health, fleet: ListedFleet) -> AsyncIterator[Console]:
    """A console that follows a fleet in this event loop."""
    console = Console(health, LEASE)
    task = asyncio.create_task(console.follow(fleet))
    await asyncio.sleep(0)
    yield console
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def fleet_of(console: Console) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await asyncio.to_thread(console.fleet_json))
    return found


async def object_of(console: Console) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await asyncio.to_thread(console.object_json, PLACE))
    return found


async def test_the_leader_has_the_objects(health: Health) -> None:
    health.ready = health.leading = True
    fleet = ListedFleet(body("other"))
    fleet.objects.append(looked_at(body(), 1_800_000_000.0))
    async with following(health, fleet) as console:
        found, one = await fleet_of(console), await object_of(console)

    assert [(line["name"], line["lag"]) for line in found["objects"]] == [("other", 12), ("orders-copy", 12)]
    assert (found["leads"], found["state"], found["stale"]) == (True, "leading", "")
    assert one["object"]["line"]["observed"] == 1_800_000_000.0
    # the page says since when the history is kept
    assert abs(one["historySince"] - time.time()) < 60
    assert one["historySeconds"] == 3600


async def test_an_object_that_is_not_there_is_said_to_be_unknown(health: Health) -> None:
    async with following(health, ListedFleet(body("other"))) as console:
        found = await object_of(console)

    assert (found["object"], found["leads"]) == (None, True)


def test_a_replica_that_stands_by_says_for_whom(health: Health) -> None:
    health.ready, health.waits_for = True, "operator-6f5d_0c4e, which serves shop, not lake"
    console = Console(health, LEASE)

    for found in (json.loads(console.fleet_json()), json.loads(console.object_json(PLACE))):
        assert (found["leads"], found["state"]) == (False, f"standing by for {health.waits_for}")
        assert (found["holder"], found["namespace"]) == ("operator-6f5d", "ots-tunnel-system")
        assert found.get("objects") is None
        assert found.get("object") is None


async def test_a_console_that_follows_no_longer_says_so(health: Health) -> None:
    async with following(health, ListedFleet(body())) as console:
        pass

    assert (await object_of(console))["leads"] is False


async def test_objects_that_nothing_vouches_for_are_told_to_be_old(health: Health) -> None:
    fleet = ListedFleet(body())
    fleet.refusal = KubeError(403, "Forbidden", "may not list")
    async with following(health, fleet) as console:
        found = await fleet_of(console)

    assert "may not list" in found["stale"]
    assert len(found["objects"]) == 1


async def test_a_first_list_that_does_not_come_is_waited_for_briefly(
    health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_module, "VOUCH_SECONDS", 0.01)
    fleet = ListedFleet()
    monkeypatch.setattr(fleet, "vouch", asyncio.Event().wait)
    async with following(health, fleet) as console:
        assert "has not answered since this operator started" in (await fleet_of(console))["stale"]


async def test_a_loop_that_stands_still_is_no_answer(health: Health, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_module, "ANSWER_SECONDS", 0.05)
    async with following(health, ListedFleet(body())) as console:
        failures: list[str] = []

        def ask() -> None:
            for call in (console.fleet_json, lambda: console.object_json(PLACE)):
                try:
                    call()
                except StandsStill as error:
                    failures.append(str(error))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)  # the event loop of this test waits here and does nothing else

    assert len(failures) == 2 * len(threads)
    assert all(text.startswith("the operator's event loop has not run for ") for text in failures)


async def test_a_loop_that_has_ended_is_no_answer(health: Health) -> None:
    console = Console(health, LEASE)
    loop = asyncio.new_event_loop()
    loop.close()
    console._followed = (loop, ListedFleet())  # noqa: SLF001 - the moment between the end of the loop and of `follow`

    with pytest.raises(StandsStill, match="the operator is ending"):
        console.object_json(PLACE)


async def test_many_readers_cost_no_more_than_one(health: Health) -> None:
    fleet = ListedFleet(body())
    async with following(health, fleet) as console:
        first = await fleet_of(console)
        fleet.objects.clear()

        assert await fleet_of(console) == first


async def test_the_history_has_what_was_observed_lately(health: Health) -> None:
    now = time.time()
    fleet, console = ListedFleet(), Console(health, LEASE, clock=lambda: now)
    samples = [
        looked_at(body(), now),
        looked_at(body(), now - 61),  # not looked at for a minute
        looked_at(unreachable().body, now),  # Ready is Unknown
        (body(), None),
    ]
    for found in samples:
        fleet.objects = [found]
        console.sample(fleet)
    fleet.objects = [samples[0]]
    console.sample(fleet, missed=1)

    task = asyncio.create_task(console.follow(fleet))
    await asyncio.sleep(0)
    found = await object_of(console)
    task.cancel()

    assert found["object"]["lags"] == [12, None, None, None, None, 12, 12]


async def test_looks_that_are_far_apart_are_not_old(health: Health) -> None:
    fleet = ListedFleet()
    fleet.objects = [looked_at(body(), 900.0)]
    console = Console(health, LEASE, clock=lambda: 1000.0, poll_seconds=30.0)
    console.sample(fleet)

    task = asyncio.create_task(console.follow(fleet))
    await asyncio.sleep(0)
    found = await object_of(console)
    task.cancel()

    assert (found["oldSeconds"], found["object"]["lags"]) == (120.0, [12, 12])


async def test_a_sample_that_fails_ends_nothing(
    health: Health, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(console_module, "SAMPLE_SECONDS", 0.01)
    broken = body()
    broken["status"]["lag"]["seconds"] = "many"
    fleet = ListedFleet(broken)
    fleet.objects = [looked_at(broken)]
    async with following(health, fleet) as console:
        await until(lambda: len(caplog.records) > 1)
        fleet.objects = [looked_at(body())]

        async def lags() -> list[int | None]:
            found: list[int | None] = (await object_of(console))["object"]["lags"]
            return found

        await until(lags)

    assert {vars(record)["action"] for record in caplog.records} == {"console_failed"}


async def test_a_thousand_objects_cost_the_event_loop_little(health: Health) -> None:
    fleet = ListedFleet()
    fleet.objects = many(1000, time.time())
    console = Console(health, LEASE)
    began = time.thread_time()
    console.sample(fleet)
    sampled = time.thread_time() - began
    task = asyncio.create_task(console.follow(fleet))
    await asyncio.sleep(0)
    found = await fleet_of(console)
    task.cancel()

    assert len(found["objects"]) == 1000
    # 8 ms of CPU time; it is done every 15 s
    assert sampled < 0.5
