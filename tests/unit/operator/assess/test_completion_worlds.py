"""Completion in generated worlds: whoever violates one clause of the proof refutes it, and nothing else delays it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.model import ChannelInfo, ChannelStatus, ClientId, Stage, TunnelDescription, TunnelType
from ots_tunnel_operator.assess.completion import is_completed
from ots_tunnel_operator.instance import Instance
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.tunnel import TunnelObserver
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.turns.calls import Calls
from ots_tunnel_operator.turns.queue import Patience
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    SETTINGS,
    base,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    resource,
    world,
)

END = NOW - 60
#: Looks that suffice once everything is done: the first, and those of the two heartbeats for which children wait.
ENOUGH_LOOKS = 2 + math.ceil(2 * 10 / SETTINGS.poll_seconds)

Moving = (ChannelStatus.OPEN, ChannelStatus.CLOSING)


@dataclass(frozen=True)
class Done:
    """A tunnel in which everything is done."""

    owned: tuple[int, ...]
    """The worker of each channel that was read to the end time."""
    workers: int
    ended: int
    """Number of TERMINATED stream channels."""
    base: int
    children: int
    """Number of channels that wait because their parents stopped at the end time."""

    def world(self) -> World:
        """The world of the first look."""
        window = {"startFrom": "Latest", "endTime": timestamp(END)}
        of = resource(recorded(), replicas=self.workers, source__tunnel__stream=window)
        channels = (
            *(base(f"b{number}", ChannelStatus.TERMINATED, client="") for number in range(self.base)),
            *(channel(f"t{number}", ChannelStatus.TERMINATED, client="") for number in range(self.ended)),
            *(channel(f"w{number}", ChannelStatus.WAIT, client="") for number in range(self.children)),
            *(
                channel(f"c{number}", Moving[number % 2], client=f"01234567-pod-{worker}")
                for number, worker in enumerate(self.owned)
            ),
        )
        pods = tuple(self._pod(number) for number in range(self.workers))
        tunnel = Tunnel(description(*channels, kind=TunnelType.BaseAndStream), same_since=NOW - 20)
        return world(of, tunnel=tunnel, pods=pods, children=deployment(self.workers))

    def _pod(self, number: int) -> Pod:
        mine = [
            report_channel(f"c{index}", end_reached=True, consumed_up_to=END + index)
            for index, worker in enumerate(self.owned)
            if worker == number
        ]
        found = pod(f"pod-{number}", *mine)
        assert found.report is not None
        return replace(found, report=replace(found.report, completed=True))


@st.composite
def done(draw: st.DrawFn) -> Done:
    workers = draw(st.integers(1, 4))
    owned = draw(st.lists(st.integers(0, workers - 1), min_size=1, max_size=6))
    small = st.integers(0, 3)
    return Done(tuple(owned), workers, draw(small), draw(small), draw(small))


def _tunnel(of: World) -> Tunnel:
    assert isinstance(of.tunnel, Tunnel)
    return of.tunnel


def _described(of: World, **changes: Any) -> World:
    tunnel = _tunnel(of)
    return replace(of, tunnel=replace(tunnel, description=replace(tunnel.description, **changes)))


def _channel(of: World, draw: st.DrawFn, change: Callable[[ChannelInfo], ChannelInfo]) -> World:
    """Change one of the channels that a worker has read to the end time."""
    channels = list(_tunnel(of).description.channels)
    indexes = [index for index, item in enumerate(channels) if item.client_id]
    index = draw(st.sampled_from(indexes))
    channels[index] = change(channels[index])
    return _described(of, channels=tuple(channels))


def _pod(of: World, draw: st.DrawFn, change: Callable[[Pod], Pod], *, with_channels: bool = False) -> World:
    indexes = [
        index
        for index, item in enumerate(of.pods)
        if not with_channels or (item.report is not None and item.report.channels)
    ]
    index = draw(st.sampled_from(indexes))
    return replace(of, pods=(*of.pods[:index], change(of.pods[index]), *of.pods[index + 1 :]))


def _reported(of: World, draw: st.DrawFn, **changes: Any) -> World:
    """Change what a worker reports of its first channel."""

    def change(found: Pod) -> Pod:
        assert found.report is not None
        first, *others = found.report.channels
        return replace(found, report=replace(found.report, channels=(replace(first, **changes), *others)))

    return _pod(of, draw, change, with_channels=True)


def _deployed(of: World, **status: int) -> World:
    return replace(of, children=deployment(of.resource.spec.replicas, **status))


def _without_report(of: World, draw: st.DrawFn) -> World:
    return _pod(of, draw, lambda found: replace(found, report=None, ready=False))


def _not_completed(of: World, draw: st.DrawFn) -> World:
    def change(found: Pod) -> Pod:
        assert found.report is not None
        return replace(found, report=replace(found.report, completed=False))

    return _pod(of, draw, change)


def _killed(of: World, draw: st.DrawFn) -> World:
    """A worker that was replaced: the description still names the former client."""

    def change(found: Pod) -> Pod:
        assert found.report is not None
        return replace(found, report=replace(found.report, client_id="01234567-new", channels=()))

    return _pod(of, draw, change, with_channels=True)


def _additional_channel(of: World, *, status: ChannelStatus, client: str) -> World:
    found = _tunnel(of).description
    return _described(of, channels=(*found.channels, channel("new", status, client=client)))


def _child_that_just_came(of: World, _: st.DrawFn) -> World:
    found = _additional_channel(of, status=ChannelStatus.WAIT, client="")
    return replace(found, tunnel=replace(_tunnel(found), same_since=NOW - 19))


#: Each clause of the proof, and how a world violates it.
VIOLATIONS: Mapping[str, Callable[[World, st.DrawFn], World]] = {
    "the end time has not passed": lambda of, draw: _described(of, service_time=draw(st.floats(END - 100, END))),
    "the service's time is unknown": lambda of, _: _described(of, service_time=None),
    "the base phase": lambda of, _: _described(
        of, tunnel=replace(_tunnel(of).description.tunnel, stage=Stage.BASE.value)
    ),
    "a worker is missing": lambda of, draw: replace(of, pods=of.pods[1:]),
    "a worker is leaving": lambda of, draw: _pod(of, draw, lambda found: replace(found, deleting=True)),
    "a worker is new": lambda of, _: _deployed(of, updatedReplicas=of.resource.spec.replicas - 1),
    "a pod too many": lambda of, _: _deployed(of, replicas=of.resource.spec.replicas + 1),
    "the controller is behind": lambda of, _: _deployed(of, observedGeneration=0),
    "no Deployment": lambda of, _: replace(of, children={}),
    "a worker does not answer": _without_report,
    "a worker does not report completed": _not_completed,
    "a worker was replaced": _killed,
    "a channel moved to nobody": lambda of, draw: _channel(
        of, draw, lambda found: replace(found, client_id=ClientId(""))
    ),
    "a channel moved to another client": lambda of, draw: _channel(
        of, draw, lambda found: replace(found, client_id=ClientId("else"))
    ),
    "a channel that nobody read": lambda of, _: _additional_channel(of, status=ChannelStatus.OPEN, client=""),
    "a channel that its owner does not report": lambda of, _: _additional_channel(
        of, status=ChannelStatus.OPEN, client="01234567-pod-0"
    ),
    "a child that just came": _child_that_just_came,
    "a channel is not at the end": lambda of, draw: _reported(of, draw, end_reached=False),
    "a consume point before the end": lambda of, draw: _reported(
        of, draw, consumed_up_to=draw(st.floats(END - 1000, END - 0.01))
    ),
    "a lag": lambda of, draw: _reported(of, draw, lag_seconds=draw(st.integers(1, 1000))),
    "a channel that was handed back": lambda of, draw: _reported(of, draw, state="CLOSE"),
}


@given(done())
def test_a_world_in_which_all_is_done_is_completed(of: Done) -> None:
    assert is_completed(of.world())


@given(st.data(), done(), st.sampled_from(sorted(VIOLATIONS)))
def test_one_violated_clause_refutes_it(data: st.DataObject, of: Done, clause: str) -> None:
    assert not is_completed(VIOLATIONS[clause](of.world(), data.draw))


@given(done())
def test_it_takes_a_bounded_number_of_looks(of: Done) -> None:
    first = of.world()

    async def describe_tunnel(*_: object) -> TunnelDescription:
        return _tunnel(first).description

    async def looks() -> int:
        cache = LoopCache()
        cache.source.instance = cast(
            Instance,
            SimpleNamespace(tunnels=SimpleNamespace(describe_tunnel=describe_tunnel), calls=Calls()),
        )
        for number in range(ENOUGH_LOOKS):
            now = NOW + number * SETTINGS.poll_seconds
            seen = await TunnelObserver(SETTINGS).observe(replace(first, now=now, tunnel=Unread()), cache, Patience())
            if is_completed(seen):
                return number + 1
        raise AssertionError(f"not completed after {ENOUGH_LOOKS} looks")

    found = asyncio.run(looks())

    assert found == 1 or of.children
