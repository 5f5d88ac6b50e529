"""Looks at channels without a client: the calls that they make, and what they remember."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.errors import CodecError, TunnelError
from ots_tunnel.model import FINISHED, Action, ChannelStatus, Checkpoint, Token
from ots_tunnel.protocol.record import Record
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel_operator.assess.lag import measure
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.peek import RETRY_SECONDS, PeekObserver
from ots_tunnel_operator.turns.calls import Calls
from ots_tunnel_operator.turns.queue import NoTurn, Patience
from ots_tunnel_operator.world.service import Peek, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.objects import EMULATOR
from tests.support.operator.scaled_worlds import sleeper
from tests.support.operator.worlds import KEYS, NOW, SETTINGS, channel, description

RECORD = Record(Action.PUT, b"", None)
#: A look at a channel is two calls.
CALLS = ["GetCheckpoint", "ReadRecords"]


def page(*records: Record, following: str = "next", may_more: bool | None = False) -> Page:
    return Page(list(records), Token(following), may_more, 10, NOW, 0.0)


@dataclass
class Service:
    """The tunnel client of one instance."""

    pages: dict[str, Page | TunnelError] = field(default_factory=dict)
    token: str = "token"
    calls: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    async def get_checkpoint(self, tunnel_id: str, client_id: str, channel_id: str) -> Checkpoint:
        self.calls.append("GetCheckpoint")
        return Checkpoint(Token(self.token), 4)

    async def read_records(self, tunnel_id: str, client_id: str, channel_id: str, token: str) -> Page:
        assert (client_id, token) == ("ots-tunnel-operator", self.token)
        self.calls.append("ReadRecords")
        self.read.append(channel_id)
        found = self.pages.get(channel_id, page())
        if isinstance(found, TunnelError):
            raise found
        return found


def cache_of(service: Service) -> LoopCache:
    cache = LoopCache()
    instance = SimpleNamespace(endpoint=EMULATOR, credentials=KEYS, tunnels=service, calls=Calls())
    cache.source.instance = cast(Instance, instance)
    return cache


def asleep(*names: str, later: float = 0.0, **changes: Any) -> World:
    listed = tuple(channel(name, ChannelStatus.CLOSE) for name in names)
    of = sleeper(tunnel=Tunnel(description(*listed)), peeks={}, **changes)
    return replace(of, now=NOW + later)


async def look(of: World, cache: LoopCache) -> World:
    return await PeekObserver(SETTINGS).observe(of, cache, Patience())


async def test_an_empty_page_of_each_channel_is_read_once_an_interval() -> None:
    service = Service()
    cache = cache_of(service)

    found = await look(asleep("c1", "c2"), cache)
    again = await look(asleep("c1", "c2", later=299), cache)

    assert found.peeks == again.peeks == {"c1": Peek(NOW, False, NOW), "c2": Peek(NOW, False, NOW)}
    assert service.calls == CALLS * 2
    later = await look(asleep("c1", "c2", later=300), cache)
    assert later.peeks["c2"] == Peek(NOW + 300, False, NOW)
    assert service.calls == CALLS * 4


@pytest.mark.parametrize("ahead", [-600.0, 0.0, 600.0])
async def test_until_when_everything_was_read_is_told_by_the_clock_of_the_service(ahead: float) -> None:
    """A reset counts from there what it loses: a clock of a node that is ahead must not hide any of it."""
    seen = await look(asleep("c1", later=ahead), cache_of(Service()))

    assert isinstance(seen.tunnel, Tunnel)
    lag = measure(seen.tunnel.description, (), seen.now, seen.peeks)
    assert lag is not None
    assert lag.consumed_up_to == seen.tunnel.description.service_time == NOW


async def test_without_the_clock_of_the_service_what_was_known_before_stays() -> None:
    cache = cache_of(Service())
    unknown = Tunnel(description(channel("c1", ChannelStatus.CLOSE), service_time=None))

    assert (await look(replace(asleep("c1"), tunnel=unknown), cache)).peeks == {"c1": Peek(NOW, False, None)}
    await look(asleep("c1", later=300), cache)
    later = await look(replace(asleep("c1", later=600), tunnel=unknown), cache)
    assert later.peeks == {"c1": Peek(NOW + 600, False, NOW)}


@pytest.mark.parametrize(
    "found",
    [
        page(RECORD),
        page(following=FINISHED),
        page(may_more=True),
        CodecError("not a page"),
    ],
)
async def test_what_a_worker_would_have_to_do_something_about(found: Page | TunnelError) -> None:
    service = Service({"c1": found})

    seen = await look(asleep("c1", "c2"), cache_of(service))

    assert seen.peeks == {"c1": Peek(NOW, True, None)}
    assert service.read == ["c1"]


async def test_a_service_that_does_not_announce_more_is_believed_with_an_empty_page() -> None:
    assert (await look(asleep("c1"), cache_of(Service({"c1": page(may_more=None)})))).peeks["c1"].waits is False
    read = page(RECORD, may_more=None)
    assert (await look(asleep("c1"), cache_of(Service({"c1": read})))).peeks["c1"].waits is True


async def test_a_channel_that_was_read_to_its_end_needs_a_worker_that_says_so() -> None:
    service = Service(token=FINISHED)

    seen = await look(asleep("c1"), cache_of(service))

    assert seen.peeks == {"c1": Peek(NOW, True, None)}
    assert service.calls == ["GetCheckpoint"]


async def test_the_last_look_that_found_nothing_is_remembered() -> None:
    service = Service()
    cache = cache_of(service)
    await look(asleep("c1"), cache)
    service.pages["c1"] = page(RECORD)

    seen = await look(asleep("c1", later=300), cache)

    assert seen.peeks == {"c1": Peek(NOW + 300, True, NOW)}


@pytest.mark.parametrize(
    "error", [service_error("OTSResourceGone", "", "r", 410), service_error("OTSNoPermissionAccess", "", "r", 403)]
)
async def test_a_refusal_is_remembered_and_tried_again_after_a_minute(error: TunnelError) -> None:
    service = Service({"c1": error})
    cache = cache_of(service)

    seen = await look(asleep("c1", "c2"), cache)
    again = await look(asleep("c1", "c2", later=RETRY_SECONDS - 1), cache)

    assert seen.peeks == {}
    assert seen.peek_failure
    assert again.peek_failure == seen.peek_failure
    assert service.read == ["c1"]
    service.pages.clear()
    later = await look(asleep("c1", "c2", later=RETRY_SECONDS), cache)
    assert later.peek_failure == ""
    assert len(later.peeks) == 2


async def test_a_queue_that_is_too_long_is_no_refusal_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = cache_of(Service())
    assert cache.source.instance is not None

    async def no_turn(*_: Any, **__: Any) -> None:
        raise NoTurn("no turn")

    monkeypatch.setattr(cache.source.instance.calls, "make", no_turn)

    assert "the queue of the operator's calls" in (await look(asleep("c1"), cache)).peek_failure


async def test_who_works_is_not_looked_at_and_what_was_known_stays() -> None:
    service = Service()
    cache = cache_of(service)
    await look(asleep("c1"), cache)
    cache.peek_failure, cache.peek_failed = "refused", NOW
    awake = replace(asleep("c1", status={"desiredReplicas": 1, "specReplicas": 1}), now=NOW + 900)

    seen = await look(awake, cache)

    assert (seen.peeks, seen.peek_failure) == ({"c1": Peek(NOW, False, NOW)}, "")
    assert service.calls == CALLS


async def test_what_is_known_of_another_tunnel_or_a_former_channel_is_forgotten() -> None:
    cache = cache_of(Service())
    await look(asleep("c1", "c2"), cache)

    assert set((await look(asleep("c2", later=1), cache)).peeks) == {"c2"}
    cache.peeks_of = "another"
    cache.source.instance = None
    assert (await look(asleep("c2", later=1), cache)).peeks == {}


async def test_a_pass_looks_for_a_few_seconds_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ots_tunnel_operator.observe.peek.PASS_SECONDS", -1.0)
    cache = cache_of(Service())

    assert set((await look(asleep("c1", "c2"), cache)).peeks) == {"c1"}
    assert set((await look(asleep("c1", "c2", later=15), cache)).peeks) == {"c1", "c2"}


async def test_a_clock_that_was_set_back_moves_the_looks() -> None:
    cache = cache_of(Service())
    cache.keep_time(NOW)
    await look(asleep("c1"), cache)
    cache.peek_failed = NOW

    cache.keep_time(NOW - 50)

    assert (cache.peeks, cache.peek_failed) == ({"c1": Peek(NOW - 50, False, NOW)}, NOW - 50)
    cache.peeks["c1"] = Peek(NOW, True)
    cache.keep_time(NOW - 60)
    assert cache.peeks["c1"] == Peek(NOW - 10, True)
