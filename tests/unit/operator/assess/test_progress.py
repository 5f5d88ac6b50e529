"""Workers that cannot be asked, and channels on which nothing moves: a table of cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel.model import ChannelInfo, ChannelStatus, Stage
from ots_tunnel_operator.assess.progress import (
    PROGRESS_SECONDS,
    SILENT_SECONDS,
    find_standstill,
    find_unreachable,
)
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.stillness import observe_movement, observe_silence
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    assessed,
    base,
    channel,
    description,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

LONG = NOW - PROGRESS_SECONDS
BEHIND = report_channel("c1", caught_up=False)
ANSWER = pod("pod-1").report
assert ANSWER is not None
SILENT = replace(pod("pod-1"), report=None)


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    found = next(item for item in status["conditions"] if item["type"] == kind)
    return found["status"], found["reason"]


def still(*pods: Pod, since: float = LONG, of: ChannelInfo | None = None, stage: str = Stage.STREAM) -> World:
    """One channel on which nothing has moved."""
    found = of or channel("c1", consumed=NOW - 5)
    return world(tunnel=Tunnel(description(found, stage=stage)), pods=pods, unmoved_since={found.channel_id: since})


@pytest.mark.parametrize(
    ("found", "stands_still"),
    [
        (still(pod("pod-1", BEHIND)), True),
        (still(pod("pod-1", BEHIND), since=LONG + 1), False),
        (still(pod("pod-1", report_channel("c1"))), False),
        (still(pod("pod-1"), pod("pod-2", report_channel("c1"))), True),
        (still(pod("pod-1", BEHIND), pod("pod-2", report_channel("c1"))), True),
        (still(pod("pod-1", replace(BEHIND, finished=True))), False),
        (still(pod("pod-1", replace(BEHIND, end_reached=True))), False),
        # the worker answers its heartbeats and holds the channel, but does not read it
        (still(pod("pod-1")), True),
        # another finding says so
        (still(SILENT), False),
        (still(pod("pod-1", ready=False)), False),
        (still(pod("pod-1"), of=channel("c1", client="foreign-1")), False),
        (still(pod("pod-1"), of=channel("c1", client="01234567-pod-0")), True),
        (still(pod("pod-1"), of=channel("c1", ChannelStatus.WAIT, client="")), True),
        (still(pod("pod-1", BEHIND), of=base("c1"), stage=Stage.BASE), True),
        # a stream channel is not read before the base data are copied
        (still(pod("pod-1", BEHIND), stage=Stage.BASE), False),
        (replace(still(pod("pod-1", BEHIND)), resource=resource(recorded(), suspend=True)), False),
        (replace(still(pod("pod-1", BEHIND)), resource=resource(recorded(), replicas=0)), False),
        (replace(still(pod("pod-1", BEHIND)), tunnel=Tunnel(description(stage=Stage.INIT))), False),
    ],
)
def test_a_channel_that_does_not_move_is_judged_by_what_is_known(found: World, stands_still: bool) -> None:
    problem = find_standstill(found)

    assert (problem is not None) == stands_still
    assert problem is None or "c1" in problem.message


def files_world(age: float) -> World:
    """Records come all the time, and a file appears once an hour; the last one so many seconds ago."""
    url = "s3://shop/orders"
    files = {"url": url, "maxFileSeconds": 3600, "credentials": {"secretRef": {"name": "keys"}}}
    of = resource({"tunnel": recorded()["tunnel"]}, sink={"files": files})
    held = report_channel("c1", caught_up=False, consumed_up_to=NOW - age, lag_seconds=int(age))
    unread = {"destination": Unread(), "sink_credentials": Unread()}
    tunnel = Tunnel(description(channel("c1", consumed=NOW - age)))
    return world(of, tunnel=tunnel, unmoved_since={"c1": NOW - age}, pods=(pod("pod-1", held),), **unread)


@pytest.mark.parametrize(
    ("age", "reason"),
    [
        (130, None),
        (3600 + PROGRESS_SECONDS - 1, None),
        (3600 + PROGRESS_SECONDS, "NotProgressing"),
    ],
)
def test_a_file_that_is_being_filled_is_no_standstill(age: float, reason: str | None) -> None:
    found = assessed(files_world(age)).degradation

    assert (found and found.reason) == reason
    assert found is None or "nothing has moved for 3720 s" in found.message


@pytest.mark.parametrize(("age", "is_late"), [(900 + 3600, False), (900 + 3600 + 60, True)])
def test_what_a_file_holds_is_not_late(age: int, is_late: bool) -> None:
    found = assessed(replace(files_world(age), unmoved_since={})).degradation

    assert (found is not None) == is_late
    assert found is None or "lagDegradedSeconds 900 and spec.sink.files.maxFileSeconds 3600 behind" in found.message


def test_a_child_may_wait_while_its_parent_moves() -> None:
    tunnel = Tunnel(description(channel("c1", consumed=NOW - 5), channel("c2", ChannelStatus.WAIT, client="")))
    found = world(tunnel=tunnel, pods=(pod("pod-1", BEHIND),), unmoved_since={"c1": NOW, "c2": LONG})

    assert find_standstill(found) is None
    assert find_standstill(replace(found, unmoved_since={"c1": LONG, "c2": LONG})) is not None


def test_a_standstill_is_degraded_and_not_ready() -> None:
    status = reported(still(pod("pod-1", BEHIND)))

    assert condition(status, "Ready") == ("False", "NotProgressing")
    assert condition(status, "Degraded") == ("True", "NotProgressing")


def test_a_worker_that_cannot_be_asked_is_a_condition_and_never_a_lag() -> None:
    asked = world(pods=(SILENT,), silent_since={"pod-1": NOW - SILENT_SECONDS})
    status = reported(asked)

    assert condition(status, "Ready") == ("Unknown", "WorkersUnreachable")
    assert condition(status, "Degraded") == ("True", "WorkersUnreachable")
    assert "seconds" not in status["lag"]
    assert "caughtUp" not in status["lag"]
    assert find_unreachable(replace(asked, silent_since={"pod-1": NOW - SILENT_SECONDS + 1})) is None


def test_the_lag_is_unknown_while_one_of_the_workers_cannot_be_asked() -> None:
    tunnel = Tunnel(description(channel("c1", consumed=NOW - 5), channel("c2", client="01234567-pod-2")))
    found = assessed(world(tunnel=tunnel, pods=(SILENT, pod("pod-2", report_channel("c2")))))

    assert found.lag is not None
    assert (found.lag.seconds, found.lag.caught_up) == (None, None)


def looked(cache: LoopCache, now: float, status: dict[str, Any] | None = None, **changes: Any) -> World:
    of = resource(status or recorded())
    found = replace(world(of, pods=(replace(pod("pod-1", BEHIND), **changes),)), now=now)
    return observe_movement(observe_silence(found, cache), cache)


def test_movement_is_any_change_of_rows_points_state_or_owner() -> None:
    cache = LoopCache()
    first = looked(cache, NOW)
    again = looked(cache, NOW + 60)
    moved = looked(cache, NOW + 90, report=replace(ANSWER, channels=(replace(BEHIND, rows=9),)))

    assert (first.unmoved_since, again.unmoved_since, moved.unmoved_since) == (
        {"c1": NOW},
        {"c1": NOW},
        {"c1": NOW + 90},
    )


@pytest.mark.parametrize("silent", [NOW + 60, NOW + 100], ids=["for a moment", "for long"])
def test_a_lost_answer_is_no_movement(silent: float) -> None:
    cache = LoopCache()
    looked(cache, NOW)
    looked(cache, NOW + 60, report=None)

    assert looked(cache, silent, report=None).unmoved_since == {"c1": NOW}
    assert looked(cache, silent + 15).unmoved_since == {"c1": NOW}


def test_silence_lasts_from_the_first_ask_without_an_answer() -> None:
    cache = LoopCache()

    assert looked(cache, NOW, report=None).silent_since == {"pod-1": NOW}
    assert looked(cache, NOW + 40, report=None).silent_since == {"pod-1": NOW}
    assert looked(cache, NOW + 41).silent_since == {}
    assert looked(cache, NOW + 42, report=None).silent_since == {"pod-1": NOW + 42}


@pytest.mark.parametrize("reason", ["NotProgressing", "WorkersUnreachable"])
def test_what_the_status_reports_goes_on_after_a_restart(reason: str) -> None:
    status = recorded(conditions=[{"type": "Degraded", "status": "True", "reason": reason}])

    found = looked(LoopCache(), NOW, status, report=None)

    assert found.unmoved_since == {"c1": 0.0 if reason == "NotProgressing" else NOW}
    assert found.silent_since == {"pod-1": 0.0 if reason == "WorkersUnreachable" else NOW}


def test_time_without_a_ready_worker_is_no_standstill() -> None:
    cache = LoopCache()
    waiting = Tunnel(description(channel("c1", ChannelStatus.WAIT, client="", consumed=NOW - 5)))
    for now in (NOW - 600, NOW - 15):
        observe_movement(replace(world(tunnel=waiting, pods=()), now=now), cache)
    resumed = observe_movement(world(tunnel=waiting, pods=(pod("pod-1"),)), cache)
    later = observe_movement(replace(resumed, now=NOW + PROGRESS_SECONDS), cache)

    assert find_standstill(resumed) is None
    assert find_standstill(later) is not None


def test_what_the_status_reports_says_nothing_of_later_pods_and_channels() -> None:
    conditions = [{"type": "Degraded", "status": "True", "reason": "NotProgressing"}]
    cache = LoopCache()
    before = looked(cache, NOW, recorded(conditions=conditions))
    split = Tunnel(description(channel("c2", ChannelStatus.WAIT, client="")))
    conditions[0]["reason"] = "WorkersUnreachable"
    cache.observed_time = NOW

    assert observe_movement(replace(before, tunnel=split, now=NOW + 15), cache).unmoved_since == {"c2": NOW + 15}
    assert looked(cache, NOW + 15, recorded(conditions=conditions), report=None).silent_since == {"pod-1": NOW + 15}
