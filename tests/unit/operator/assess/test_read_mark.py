"""The read mark: what moves it, what holds it, and that it never covers a change that nobody has read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage, Token, TunnelType
from ots_tunnel.protocol.possible_gap import possible_gap, read_until
from ots_tunnel_operator.assess.gap import Gap
from ots_tunnel_operator.assess.gaps import find_gaps
from ots_tunnel_operator.assess.read_mark import ReadMark, read_mark
from ots_tunnel_operator.plan.actions import ApplyObject
from ots_tunnel_operator.report.status_change import is_urgent
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Failure, Missing, Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Table, Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    SCHEMA,
    TUNNEL_ID,
    base,
    channel,
    description,
    planned,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

#: What the stream of `world` keeps, seconds; a tenth is news.
RETENTION = 100_000
TENTH = RETENTION / 10
OLD = NOW - 2 * TENTH
ENDED = ChannelStatus.TERMINATED


def reader(*channels: Any, tunnel_id: str = TUNNEL_ID, name: str = "pod-1") -> Pod:
    """A worker on the tunnel that reports channels."""
    found = pod(name, *channels)
    assert found.report is not None
    return replace(found, report=replace(found.report, tunnel_id=tunnel_id))


def read(name: str, until: float | None = NOW - 1) -> Any:
    return report_channel(name, consumed_up_to=until)


def idle(
    *channels: ChannelInfo,
    pods: tuple[Pod, ...] = (reader(read("c1")),),
    mark: float | None = None,
    of: str = TUNNEL_ID,
    **changes: Any,
) -> World:
    """A tunnel whose consume points stand still, with its workers and its recorded mark."""
    status = recorded() if mark is None else recorded(readUntil={"tunnelId": of, "time": timestamp(mark)})
    found = Tunnel(description(*(channels or (channel("c1", consumed=OLD),)), **changes))
    return world(resource(status), tunnel=found, pods=pods)


def gaps_of(of: World) -> tuple[Gap, ...]:
    return find_gaps(of, read_mark(of))


def moved(of: World) -> float | None:
    mark = read_mark(of)
    return None if mark is None else mark.time


def test_it_is_moved_in_any_case_when_the_last_worker_goes_but_never_back() -> None:
    fresh = idle(channel("c1", consumed=NOW - 60))

    assert moved(fresh) is None
    assert read_mark(fresh, is_last=True) == ReadMark(TUNNEL_ID, NOW - 1)
    assert read_mark(idle(mark=NOW - 1), is_last=True) == ReadMark(TUNNEL_ID, NOW - 1)
    # where consume points move they tell the same, as long as the tunnel is there
    assert read_mark(idle(channel("c1", consumed=NOW)), is_last=True) == ReadMark(TUNNEL_ID, NOW - 1)
    # what nobody reports was not read for certain
    assert read_mark(idle(pods=()), is_last=True) is None


def test_it_is_the_time_until_which_the_slowest_channel_is_read() -> None:
    channels = (channel("c1", consumed=OLD), channel("c2", consumed=OLD), channel("c0", ENDED), base("b1", ENDED))
    pods = (reader(read("c1", NOW - 7.5)), reader(read("c2", NOW - 3), name="pod-2"))

    assert read_mark(idle(*channels, pods=pods)) == ReadMark(TUNNEL_ID, NOW - 8)


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, NOW - 1), (OLD + TENTH - 2, NOW - 1), (NOW - TENTH, NOW - TENTH), (NOW - 5, NOW - 5)],
)
def test_it_moves_by_a_tenth_of_the_retention(before: float | None, after: float) -> None:
    assert moved(idle(mark=before)) == after


def test_consume_points_that_move_need_no_mark() -> None:
    assert moved(idle(channel("c1", consumed=NOW - TENTH))) is None
    # one that moves says nothing about one that stands still
    both = (channel("c1", consumed=NOW), channel("c2", consumed=OLD))
    assert moved(idle(*both, pods=(reader(read("c1"), read("c2")),))) == NOW - 1


def test_a_channel_that_was_never_consumed_needs_one_as_soon_as_its_start_is_old() -> None:
    def late(created: float) -> World:
        return idle(channel("c1"), kind=TunnelType.Stream, create_time_ns=int(created * 1e9))

    assert moved(late(NOW - 5)) is None
    assert moved(late(OLD)) == NOW - 1
    # a child of unknown age
    assert moved(idle(channel("c1"), channel("c0", ENDED))) == NOW - 1


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"tunnel": Unread()}, id="tunnel not read"),
        pytest.param({"tunnel": Missing()}, id="no tunnel"),
        pytest.param({"source": Unread()}, id="table not read"),
        pytest.param({"source": Table(SCHEMA)}, id="retention unknown"),
        pytest.param({"pods": ()}, id="no worker"),
        pytest.param({"pods": (pod("pod-1", ready=False),)}, id="a silent worker"),
        pytest.param({"pods": (reader(read("c1", None)),)}, id="nothing read yet"),
        pytest.param({"pods": (reader(read("c2")),)}, id="another channel"),
        pytest.param({"pods": (reader(read("c1"), tunnel_id="another"),)}, id="a worker on another tunnel"),
        pytest.param({"tunnel": Tunnel(description(channel("c1"), tunnel_id="another"))}, id="not the recorded one"),
        pytest.param({"tunnel": Tunnel(description(channel("c1"), service_time=None))}, id="no service time"),
        pytest.param({"tunnel": Tunnel(description(channel("c1"), stage=Stage.INIT))}, id="channels are not complete"),
        pytest.param({"tunnel": Tunnel(description(channel("c1", ENDED)))}, id="every channel has ended"),
        pytest.param({"tunnel": Tunnel(description(channel("c1"), channel("c2")))}, id="a child that waits"),
    ],
)
def test_what_is_not_known_of_all_channels_moves_nothing(changes: dict[str, Any]) -> None:
    assert moved(replace(idle(mark=OLD), **changes)) == OLD
    assert moved(replace(idle(), **changes)) is None


def test_a_channel_that_the_description_is_too_old_to_list_holds_it() -> None:
    assert moved(idle(service_time=NOW - 300)) == NOW - 300


def test_a_mark_of_another_tunnel_is_void() -> None:
    assert moved(idle(mark=NOW - 5, of="another", pods=())) is None
    assert moved(idle(mark=NOW - 5, of="another")) == NOW - 1


def test_it_refutes_a_gap_from_outside() -> None:
    old = channel("c1", consumed=NOW - RETENTION - 500)
    assert len(gaps_of(idle(old, pods=()))) == 1
    assert gaps_of(idle(old, pods=(), mark=NOW - RETENTION + 500)) == ()
    (gap,) = gaps_of(idle(old, pods=(), mark=NOW - RETENTION - 100))
    assert gap.start == NOW - RETENTION - 100


def test_it_reaches_status_and_document_and_rolls_no_pod() -> None:
    def rendered(of: World) -> tuple[Any, Any]:
        applied = [action.manifest for action in planned(of).actions if isinstance(action, ApplyObject)]
        found = {manifest["kind"]: manifest for manifest in applied}
        return found["ConfigMap"]["data"]["worker.yaml"], found["Deployment"]

    without, first, later = (idle(pods=()), idle(), idle(mark=NOW - 5))

    assert reported(first)["readUntil"] == {"tunnelId": TUNNEL_ID, "time": timestamp(NOW - 1)}
    assert "readUntil" not in reported(without)
    assert is_urgent(reported(without), reported(without) | {"readUntil": reported(first)["readUntil"]})
    texts, workers = zip(*(rendered(of) for of in (without, first, later)), strict=True)
    assert len(set(texts)) == 3
    assert workers[0] == workers[1] == workers[2]


def test_a_look_that_failed_keeps_it() -> None:
    of = idle(mark=NOW - 5)
    problem = planned(replace(of, tunnel=Missing())).problem
    assert problem is not None
    kept = reported(replace(of, tunnel=Failure(problem)))

    assert kept["readUntil"] == {"tunnelId": TUNNEL_ID, "time": timestamp(NOW - 5)}


# -- generated histories -----------------------------------------------------------------------------------------------


@dataclass
class Log:
    """One channel as it is: what was written to it, what was read of it, and what the service tells."""

    name: str
    parent: Log | None = None
    unread: list[float] = field(default_factory=list)
    is_split: bool = False
    ended: bool = False
    consumed: float = 0.0
    reported: float | None = None

    def info(self) -> ChannelInfo:
        return channel(self.name, ENDED if self.ended else ChannelStatus.OPEN, consumed=self.consumed)

    def read(self, now: float, *, idle_advance: bool) -> None:
        """Read to the end, confirm and store."""
        if self.unread or idle_advance:
            self.consumed = now if idle_advance else self.unread[-1]
        self.unread.clear()
        self.reported, self.ended = now, self.is_split


@dataclass
class History:
    """A tunnel, the workers that come and go, and an operator that looks now and then."""

    idle_advance: bool
    now: float = NOW
    logs: list[Log] = field(default_factory=lambda: [Log("c0"), Log("c1")])
    is_up: bool = True
    listed: tuple[float, tuple[ChannelInfo, ...]] = (NOW, ())
    status: dict[str, Any] = field(default_factory=recorded)

    def world(self) -> World:
        listed_at, infos = self.listed
        reports = tuple(read(log.name, log.reported) for log in self.logs if self.is_up and log.reported is not None)
        told = description(*infos, kind=TunnelType.Stream, service_time=listed_at, create_time_ns=int(NOW * 1e9))
        pods = (reader(*reports),) if self.is_up else ()
        return world(resource(self.status), tunnel=Tunnel(told), pods=pods)

    def step(self, name: str, number: int) -> None:
        log = self.logs[number % len(self.logs)]
        match name:
            case "write" if not log.is_split:
                log.unread.append(self.now)
            case "split" if not log.is_split and len(self.logs) < 8:
                log.is_split = True
                self.logs += [Log(f"c{len(self.logs) + index}", log) for index in range(2)]
            case "read" if self.is_up:
                self.read(hanging=log if number % 2 else None)
            case "describe":
                self.listed = self.now, tuple(each.info() for each in self.logs)
            case "look":
                if (mark := read_mark(self.world())) is not None:
                    self.status["readUntil"] = mark.document()
            case "down" | "up":
                self.restart(is_up=name == "up")
        self.now += 1 + (number * number) % 20_000

    def read(self, hanging: Log | None) -> None:
        """Read the channels whose parents have ended, but not the one that hangs."""
        waiting = [log for log in self.logs if log.parent is not None and not log.parent.ended]
        for log in self.logs:
            if not log.ended and log not in waiting and log is not hanging:
                log.read(self.now, idle_advance=self.idle_advance)

    def restart(self, *, is_up: bool) -> None:
        """A worker that comes or goes takes with it what it knows."""
        self.is_up = is_up
        for log in self.logs:
            log.reported = None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["write", "read", "read", "describe", "describe", "look", "look", "split", "down", "up", "wait"]
        ),
        st.integers(0, 200),
    ),
    max_size=60,
)


@given(steps=STEPS, idle_advance=st.booleans())
def test_no_history_hides_a_lost_change_or_calls_a_covered_one_lost(
    steps: list[tuple[str, int]], idle_advance: bool
) -> None:
    history = History(idle_advance)
    history.step("describe", 0)
    for step in steps:
        history.step(*step)
        mark = read_mark(replace(history.world(), pods=()))
        for log in history.logs:
            assert mark is None or not log.unread or log.unread[0] > mark.time, "the mark covers an unread change"
    history.step("down", 0)
    history.step("describe", 0)
    _check_next_worker(history)


def _check_next_worker(history: History) -> None:
    """What a worker finds that opens every channel now."""
    of = history.world()
    mark = moved(of)
    assert isinstance(of.tunnel, Tunnel)
    seen = {gap.channel: gap for gap in gaps_of(of)}
    has_ended = any(log.ended for log in history.logs)
    for log in history.logs:
        if log.ended:
            continue
        until = read_until(log.info().channel_id, Token(""), of.tunnel.description, mark=mark)
        lost = [time for time in log.unread if time < history.now - RETENTION]
        first = next((time for time in log.unread if time >= history.now - RETENTION), None)
        gap = possible_gap(until, answered=history.now, first=first, retention=RETENTION)
        if mark is not None and mark >= history.now - RETENTION:
            assert (gap, lost, log.name in seen) == (None, [], False)
        # beside channels that have ended, the start of a channel that was never consumed is an estimate
        if lost and (log.consumed or not has_ended):
            assert gap is not None
            assert gap.start <= lost[0]
            assert gap.end > lost[-1]
            assert log.name in seen
