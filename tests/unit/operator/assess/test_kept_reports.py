"""One lost answer of a worker: the figures stay for a while, marked with their time, and prove nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ots_tunnel.model import ChannelId
from ots_tunnel_operator.assess.progress import SILENT_SECONDS
from ots_tunnel_operator.assess.read_mark import read_mark
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.observe.stillness import OLDEST_SECONDS, observe_movement, observe_silence
from ots_tunnel_operator.report.status_change import is_urgent
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.world.absence import Unread
from ots_tunnel_operator.world.pod import Pod
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import World
from tests.support.operator.worlds import (
    NOW,
    assessed,
    channel,
    deployment,
    description,
    pod,
    recorded,
    report_channel,
    reported,
    resource,
    world,
)

PODS = (pod("pod-1", report_channel("c1")), pod("pod-2", report_channel("c2")))
CHANNELS = (channel("c1", client="01234567-pod-1", consumed=NOW - 5), channel("c2", client="01234567-pod-2"))


def look(cache: LoopCache, now: float, *pods: Pod, status: dict[str, Any] | None = None, **changes: Any) -> World:
    found = world(
        resource(status or recorded(), replicas=2),
        pods=pods,
        children=deployment(2),
        **{"tunnel": Tunnel(description(*CHANNELS)), **changes},
    )
    return observe_movement(observe_silence(replace(found, now=now), cache), cache)


def silent(of: Pod) -> Pod:
    return replace(of, report=None)


def ready(status: dict[str, Any]) -> tuple[str, str]:
    found = next(item for item in status["conditions"] if item["type"] == "Ready")
    return found["status"], found["reason"]


def test_a_lost_answer_changes_nothing_until_the_grace_is_over() -> None:
    cache = LoopCache()
    before = reported(look(cache, NOW, *PODS))
    assert ready(before) == ("True", "Consuming")

    for seconds in (15, 15 + SILENT_SECONDS - 1):
        after = reported(look(cache, NOW + seconds, PODS[0], silent(PODS[1]), status=before))

        assert ready(after) == ("True", "Consuming")
        assert after["observedTime"] == after["lag"]["observedTime"] == timestamp(NOW)
        assert {**after, "lag": None} == {**before, "lag": None}
        assert (after["lag"]["seconds"], after["lag"]["caughtUp"]) == (0, True)
        assert not is_urgent(before, after)

    over = reported(look(cache, NOW + 15 + SILENT_SECONDS, PODS[0], silent(PODS[1]), status=before))
    assert ready(over) == ("Unknown", "WorkersUnreachable")
    assert "seconds" not in over["lag"]
    assert over["observedTime"] == timestamp(NOW + 15 + SILENT_SECONDS)


def test_a_problem_that_a_worker_reported_stays_with_its_report() -> None:
    cache = LoopCache()
    failing = pod("pod-2", replace(report_channel("c2"), error="refused"))
    before = reported(look(cache, NOW, PODS[0], failing))
    after = reported(look(cache, NOW + 15, PODS[0], silent(failing), status=before))

    assert ready(before) == ready(after) == ("False", "ChannelErrors")


def test_nothing_is_kept_of_a_pod_that_left_or_that_nobody_asked_for_long() -> None:
    cache = LoopCache()
    look(cache, NOW, *PODS)
    late = look(cache, NOW + OLDEST_SECONDS, PODS[0], silent(PODS[1]))
    look(cache, NOW + OLDEST_SECONDS + 15, *PODS)
    gone = look(cache, NOW + OLDEST_SECONDS + 16, PODS[0], replace(silent(PODS[1]), ready=False))
    again = look(cache, NOW + OLDEST_SECONDS + 17, PODS[0], silent(PODS[1]))

    assert [found.pods[1].kept for found in (late, gone, again)] == [None, None, None]


def test_a_kept_report_tells_nothing_of_a_channel_that_moved() -> None:
    cache = LoopCache()
    look(cache, NOW, *PODS)
    moved = (CHANNELS[0], replace(CHANNELS[1], client_id="01234567-pod-1"))
    taken = (replace(CHANNELS[0], client_id="01234567-pod-2"), CHANNELS[1])
    left = assessed(look(cache, NOW + 15, PODS[0], silent(PODS[1]), tunnel=Tunnel(description(*moved)))).lag
    got = assessed(look(cache, NOW + 16, silent(PODS[0]), silent(PODS[1]), tunnel=Tunnel(description(*taken)))).lag
    told = pod("pod-1", report_channel("c1"), report_channel("c2", caught_up=False, lag_seconds=9))
    other = assessed(look(cache, NOW + 17, told, silent(PODS[1]))).lag

    assert left is not None
    assert got is not None
    assert other is not None
    assert left.caught_up is None
    assert (got.seconds, got.caught_up) == (None, None)
    # whether the description or the report is the older one is not known
    assert (other.seconds, other.caught_up) == (9, None)


def test_nothing_is_decided_for_good_by_a_kept_report() -> None:
    cache = LoopCache()
    finished = "2026-11-01T00:00:00Z"
    snapshot = {"application": "a", "state": "Completed", "finishedTime": finished, "consistent": False}
    status = recorded(snapshot=snapshot)
    seen = look(cache, NOW, *PODS, status=status)
    lost = look(cache, NOW + 15, PODS[0], silent(PODS[1]), status=status)
    fresh, kept = assessed(seen), assessed(lost)

    assert fresh.answered_lag is not None
    assert kept.answered_lag is not None
    assert (fresh.answered_lag.caught_up, kept.answered_lag.caught_up) == (True, None)
    assert kept.lag is not None
    assert kept.lag.caught_up is True
    assert reported(seen)["snapshot"]["consistent"] is True
    assert reported(lost)["snapshot"]["consistent"] is False
    assert read_mark(lost) is None


def test_a_kept_report_does_without_a_description() -> None:
    cache = LoopCache()
    look(cache, NOW, *PODS)
    status = reported(look(cache, NOW + 15, PODS[0], silent(PODS[1]), tunnel=Unread()))

    assert status["workers"][1]["channels"] == 1
    assert ChannelId("c2") in {item.channel_id for item in cache.reports["pod-2"].report.channels}
