from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.errors import ConnectionLost, ResourceGone, TunnelError
from ots_tunnel.model import (
    ChannelId,
    ChannelInfo,
    ChannelStatus,
    ChannelType,
    Checkpoint,
    ClientId,
    Stage,
    Token,
    TunnelDescription,
    TunnelId,
    TunnelInfo,
    TunnelType,
)
from ots_tunnel.protocol.token import TokenContent, build_token
from ots_tunnel.worker.pages.budget import ByteBudget
from ots_tunnel.worker.session.completion import Completion, CompletionWatch, completion, ended_early
from tests.support.records import page_of_times
from tests.support.waiting import until


def tunnel(*channels: tuple[str, ChannelStatus, str], stage: Stage = Stage.STREAM) -> TunnelDescription:
    info = TunnelInfo(TunnelId("t"), "t", TunnelType.BaseAndStream, "t", "i", "s", stage, False, 0, None)
    return TunnelDescription(
        info,
        tuple(
            ChannelInfo(ChannelId(name), ChannelType.STREAM, status, ClientId(owner), 0, 0)
            for name, status, owner in channels
        ),
        0,
    )


S = ChannelStatus


@pytest.mark.parametrize(
    ("channels", "done", "passed", "expected"),
    [
        ([("a", S.TERMINATED, ""), ("b", S.TERMINATED, "")], set(), set(), Completion.ALL),
        ([("a", S.TERMINATED, ""), ("b", S.OPEN, "me")], {"b"}, set(), Completion.ALL),
        ([("a", S.TERMINATED, ""), ("b", S.OPEN, "me")], set(), set(), Completion.OPEN),
        ([("a", S.OPEN, "me"), ("b", S.OPEN, "other")], {"a"}, set(), Completion.OWN_SHARE_DONE),
        ([("a", S.OPEN, "me"), ("b", S.OPEN, "elder")], {"a"}, set(), Completion.OTHERS_FINISH),
        ([("a", S.OPEN, "me"), ("b", S.OPEN, "elder")], set(), set(), Completion.OPEN),
        ([("a", S.TERMINATED, ""), ("b", S.OPEN, "elder")], set(), set(), Completion.OWN_SHARE_DONE),
        ([("a", S.OPEN, "me"), ("b", S.CLOSE, "")], {"a"}, {"b"}, Completion.OPEN),
        ([("a", S.OPEN, "me"), ("b", S.WAIT, "")], {"a"}, set(), Completion.OPEN),
        ([("a", S.OPEN, "me"), ("b", S.WAIT, "")], {"a"}, {"b"}, Completion.ALL),
        ([("a", S.TERMINATED, ""), ("b", S.WAIT, "")], set(), {"b"}, Completion.OPEN),
        ([("a", S.OPEN, "other"), ("b", S.WAIT, "")], set(), set(), Completion.OPEN),
        ([("a", S.OPEN, "other"), ("b", S.WAIT, "")], set(), {"b"}, Completion.OWN_SHARE_DONE),
        ([], set(), {"b"}, Completion.OPEN),
    ],
)
def test_completion(
    channels: list[tuple[str, ChannelStatus, str]], done: set[str], passed: set[str], expected: Completion
) -> None:
    mine, theirs = ({ChannelId(name) for name in names} for names in (done, passed))

    assert completion(tunnel(*channels), ClientId("me"), mine, theirs) is expected


def test_before_the_stream_nothing_is_complete() -> None:
    early = tunnel(("a", S.TERMINATED, ""), stage=Stage.BASE)

    assert completion(early, ClientId("me"), set(), set()) is Completion.OPEN


@pytest.mark.parametrize(
    ("service_time", "settled", "early"),
    [(99.0, True, True), (None, True, True), (101.0, False, True), (101.0, True, False)],
)
def test_channels_that_all_end_before_the_end_time_are_no_end(
    service_time: float | None, settled: bool, early: bool
) -> None:
    """A tunnel may have an end of its own, and the children of a split may not be listed yet."""
    found = replace(tunnel(("a", S.TERMINATED, "")), service_time=service_time)

    assert ended_early(found, 100_000_000, settled=settled) is early


def test_an_end_time_needs_a_channel_of_the_stream_but_in_a_tunnel_of_existing_rows() -> None:
    found = replace(tunnel(("a", S.TERMINATED, "")), service_time=101.0)
    base = replace(found, channels=(replace(found.channels[0], channel_type=ChannelType.BASE),))
    rows_alone = replace(base, tunnel=replace(base.tunnel, tunnel_type=TunnelType.BaseData))

    assert ended_early(base, 100_000_000, settled=True)
    assert not ended_early(rows_alone, 100_000_000, settled=False)


@dataclass
class Client:
    """A client whose tunnel has one channel; it belongs to another client until it is terminated."""

    held: dict[ChannelId, Any] = field(default_factory=dict)
    calls: int = 0
    on_call: Any = None
    status: ChannelStatus = S.OPEN
    waiting: list[str] = field(default_factory=list)
    service_time: float = 50.0
    #: Commit time of the records of channels that wait, Unix seconds.
    records_at: dict[str, float] = field(default_factory=dict)
    #: Raised by reads of channels that wait.
    refusal: TunnelError | None = None
    looks: int = 0

    async def get_checkpoint(self, tunnel_id: str, client_id: str, channel_id: ChannelId) -> Checkpoint:
        return Checkpoint(build_token(TokenContent(iterator=channel_id)), 0)

    async def read_records(self, tunnel_id: str, client_id: str, channel_id: ChannelId, token: Token) -> Page:
        self.looks += 1
        if self.refusal is not None:
            raise self.refusal
        times = [self.records_at[channel_id]] if channel_id in self.records_at else []
        return page_of_times(*(round(time * 1e6) for time in times), next_token=token, may_more=False)

    async def describe_tunnel(self, *place: object) -> TunnelDescription:
        self.calls += 1
        if self.on_call is not None:
            self.on_call()
        waiting = [(name, S.WAIT, "") for name in self.waiting]
        return replace(tunnel(("a", self.status, "other"), *waiting), service_time=self.service_time)

    @asynccontextmanager
    async def watched(
        self, *, exits: bool = False, end: float | None = None, on_complete: Callable[[], None] = lambda: None
    ) -> AsyncIterator[tuple[Any, CompletionWatch]]:
        """The status of a worker, and its running watch."""
        status = SimpleNamespace(completed=False, tunnel_done=False, is_ready=True)
        names = {"table": "t", "tunnel_name": "t", "tunnel_id": "t"}
        end_us = None if end is None else end * 1e6
        settings = SimpleNamespace(interval=0.001, timeout=0.01, end_us=end_us, exit_when_complete=exits, **names)
        worker = SimpleNamespace(budget=ByteBudget(1))
        context = SimpleNamespace(
            client=self, client_id=ClientId("me"), settings=settings, status=status, worker=worker
        )
        watch = CompletionWatch(cast(Any, context), lambda: self.held, on_complete)
        task = asyncio.create_task(watch.run())
        try:
            yield status, watch
        finally:
            task.cancel()


async def test_a_worker_that_gains_a_channel_is_not_complete_any_more() -> None:
    client = Client()
    async with client.watched() as (status, watch):
        await until(lambda: status.completed)
        client.held[ChannelId("a")] = SimpleNamespace(end_reached=False)
        watch.channel_gained()
        assert not status.completed
        status.completed = True
        await until(lambda: not status.completed)


async def test_a_channel_that_comes_during_the_check_counts() -> None:
    client = Client()
    client.on_call = lambda: client.held.update({ChannelId("a"): SimpleNamespace(end_reached=False)})
    async with client.watched() as (status, _):
        await until(lambda: client.calls == 1)
        await asyncio.sleep(0.02)
        assert (status.completed, client.calls) == (False, 1)


async def test_a_complete_tunnel_without_an_end_time_is_described_once() -> None:
    client = Client()
    async with client.watched() as (status, _):
        await until(lambda: status.completed)
        await asyncio.sleep(0.02)
        assert client.calls == 1


async def test_an_idle_worker_that_ends_with_the_tunnel_waits_for_the_channels_of_the_others() -> None:
    client, ended = Client(), asyncio.Event()
    async with client.watched(exits=True, on_complete=ended.set) as (status, _):
        await until(lambda: status.completed)
        assert (ended.is_set(), status.tunnel_done) == (False, False)
        client.status = S.TERMINATED
        await until(ended.is_set)
        assert status.tunnel_done


async def test_a_channel_that_waits_before_the_end_time_is_not_done() -> None:
    client = Client(waiting=["child"])
    async with client.watched(end=60.0) as (status, _):
        await until(lambda: client.calls > 5)
        assert not status.completed
        client.service_time = 61.0
        await until(lambda: status.completed)


async def test_a_channel_that_waits_with_changes_from_before_the_end_time_is_never_done() -> None:
    client = Client(waiting=["child", "late child"], service_time=61.0, records_at={"child": 60.0, "late child": 60.5})
    async with client.watched(end=60.0) as (status, _):
        await until(lambda: client.calls > 40)
        assert not status.completed
        assert client.looks == 1, "what it holds does not change while it waits"
        client.waiting = ["late child"]
        await until(lambda: status.completed)
        assert client.looks == 2


async def test_a_channel_that_cannot_be_read_now_is_not_done() -> None:
    client = Client(waiting=["child"], service_time=61.0, refusal=ConnectionLost("cut"))
    async with client.watched(end=60.0) as (status, _):
        await until(lambda: client.looks > 40)
        assert not status.completed
        client.refusal = None
        await until(lambda: status.completed)


async def test_where_only_owners_may_read_a_channel_waits_for_the_heartbeat_timeout() -> None:
    client = Client(waiting=["child"], service_time=61.0, refusal=ResourceGone("OTSResourceGone", "not the owner"))
    async with client.watched(end=60.0) as (status, _):
        await until(lambda: status.completed)
        assert client.calls >= 11, "more than the intervals of the timeout"
        client.waiting.append("another")
        before = client.calls
        await until(lambda: client.calls > before + 1)
        assert not status.completed
        await until(lambda: status.completed)
