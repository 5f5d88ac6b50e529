"""When the last worker goes, and when it comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator.autoscale.asleep import is_fresh
from ots_tunnel_operator.autoscale.decision import Cause, Decision, decide
from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.peeked import Peeked
from ots_tunnel_operator.autoscale.policy import Policy, Sleep
from ots_tunnel_operator.autoscale.record import Record

SLEEP = Sleep(idle=600.0, interval=300.0)
POLICY = Policy(min_workers=0, sleep=SLEEP)
DAY = 86_400.0
BEGIN = 1_000_000.0
IDLE = Figures(0.0, 4, 0.0, 0.0, 0.0, rows=7000, retention=7 * DAY, peeked=Peeked())


def seen(figures: Figures, now: float) -> Figures:
    """A look whose channels have just been looked at."""
    return replace(figures, time=now, peeked=Peeked(now - 10))


def looked_at(*looks: Figures, policy: Policy = POLICY, record: Record | None = None) -> list[Decision]:
    """The decisions about these looks, 15 s apart, of which each is carried out."""
    record, history, found = record or Record(1), History(), []
    for number, figures in enumerate(looks):
        now = BEGIN + 15.0 * number
        decision = decide(policy, record, figures if figures.time else seen(figures, now), history)
        history = decision.history
        if decision.change is not None:
            record = Record(decision.desired, now, None, None if decision.desired else now)
        found.append(decision)
    return found


def changes(found: list[Decision]) -> list[tuple[int, Cause, int, int]]:
    return [
        (number, decision.change.cause, decision.change.before, decision.change.after)
        for number, decision in enumerate(found)
        if decision.change is not None
    ]


def test_it_falls_asleep_after_the_idle_time_and_says_why() -> None:
    found = looked_at(*[IDLE] * 60)

    assert changes(found) == [(40, Cause.ASLEEP, 1, 0)]
    change = found[40].change
    assert change is not None
    assert change.message == (
        "nothing was read for 600 s (scaleToZero.idleSeconds 600), and one page of each channel, read from its "
        "checkpoint, is empty"
    )
    assert [(one.desired, one.recommended, one.limit) for one in found[40:]] == [(0, 0, Limit.NONE)] * 20


def test_without_the_users_word_one_worker_stays() -> None:
    found = looked_at(*[IDLE] * 100, policy=Policy())

    assert changes(found) == []


@pytest.mark.parametrize(
    "busy",
    [
        {"rows": 7001},
        {"lag": 3.0},
        {"rate": 0.1},
        {"lag": None},
        {"rate": None},
        {"rows": None},
        {"unsettled": "1 of 2 workers are ready"},
        {"channels": None, "lag": None},
        {"missing": 1},
    ],
)
def test_whatever_moves_or_is_unknown_begins_the_idle_time_anew(busy: dict[str, Any]) -> None:
    moment = replace(IDLE, **busy)
    later = [replace(IDLE, rows=moment.rows or IDLE.rows)] * 80

    found = looked_at(*[IDLE] * 30, moment, *later)

    (first, *_) = changes(found)
    assert first[1] is Cause.ASLEEP
    assert first[0] in (70, 71)


@pytest.mark.parametrize(
    "awake",
    [
        {"peeked": Peeked(BEGIN + 1000, waits="c1")},
        {"peeked": Peeked(BEGIN + 1000, failure="no permission")},
        {"peeked": Peeked(None)},
        {"peeked": Peeked(BEGIN - 1)},
        {"peeked": None},
        {"retention": None},
        {"is_over": True},
    ],
)
def test_it_does_not_fall_asleep_while_anything_is_open(awake: dict[str, Any]) -> None:
    looks = [replace(IDLE, time=BEGIN + 15.0 * number, **awake) for number in range(80)]

    assert changes(looked_at(*looks)) == []


def test_only_the_last_worker_goes_to_sleep() -> None:
    found = looked_at(*[IDLE] * 120, record=Record(2))

    assert [(cause, before, after) for _, cause, before, after in changes(found)] == [
        (Cause.IDLE, 2, 1),
        (Cause.ASLEEP, 1, 0),
    ]


def test_a_failed_look_is_told_while_it_keeps_the_last_worker() -> None:
    looks = [replace(IDLE, time=BEGIN + 15.0 * number, peeked=Peeked(None, "", "refused")) for number in range(50)]

    found = looked_at(*looks)

    assert found[30].limit is Limit.NONE
    assert (found[45].limit, found[45].desired, found[45].recommended) == (Limit.PEEK_FAILED, 1, 1)


ASLEEP = Record(0, slept=BEGIN)


def woken(now: float, record: Record = ASLEEP, history: History | None = None, **changes: Any) -> Decision:
    figures = replace(seen(replace(IDLE, lag=None, rate=None, busy=None), now), **changes)
    return decide(POLICY, record, figures, history or History())


def test_it_stays_asleep_while_every_look_finds_nothing() -> None:
    found = woken(BEGIN + DAY)

    assert (found.desired, found.change, found.limit, found.recommended) == (0, None, Limit.NONE, 0)
    assert not found.is_blind


@pytest.mark.parametrize(
    ("now", "record", "figures", "why"),
    [
        (BEGIN + 60, ASLEEP, {"peeked": Peeked(BEGIN + 50, "c1")}, "channel c1 has something to read"),
        (BEGIN + 60, ASLEEP, {"peeked": Peeked(None, "c1")}, "channel c1 has something to read"),
        (BEGIN + 1.75 * DAY, ASLEEP, {}, "no worker has run for a quarter of the 604800 s"),
        (BEGIN + 60, ASLEEP, {"retention": None}, "it is not known for how long the table keeps its stream"),
        (BEGIN + 60, ASLEEP, {"is_over": True}, "the end time has passed"),
        (BEGIN + 60, Record(0), {}, "the object was changed while no worker ran"),
        (BEGIN - 61, ASLEEP, {}, "a time that lies in the future"),
    ],
)
def test_what_wakes_it(now: float, record: Record, figures: dict[str, Any], why: str) -> None:
    found = woken(now, record, **figures)

    assert found.change is not None
    assert (found.desired, found.change.cause, found.change.before, found.change.after) == (1, Cause.WOKEN, 0, 1)
    assert why in found.change.message


def test_the_clock_of_another_replica_may_be_a_little_behind() -> None:
    assert woken(BEGIN - 30).change is None


def test_a_quarter_of_the_retention_wakes_it_although_the_tunnel_cannot_be_read() -> None:
    unread = {"channels": None, "peeked": None}

    assert woken(BEGIN + DAY, **unread).change is None
    assert woken(BEGIN + 2 * DAY, **unread).change is not None


def test_looks_that_fail_for_two_intervals_wake_it() -> None:
    history, failing = History(), Peeked(None, "", "AccessDenied")
    wakes = []
    for number in range(60):
        now = BEGIN + 60 + 15.0 * number
        found = woken(now, history=history, peeked=failing)
        history = found.history
        if found.change is not None:
            wakes.append((now - BEGIN - 60, found.change.message))
            break

    assert wakes == [(615.0, "for 615 s the operator could not look at every channel: AccessDenied")]


def test_channels_that_are_not_looked_at_wake_it_as_well() -> None:
    old = Peeked(BEGIN)
    first = woken(BEGIN + 600, peeked=old)

    assert first.change is None
    later = woken(BEGIN + 1201, history=replace(first.history, looked=BEGIN + 600), peeked=replace(old))
    assert later.change is not None
    assert later.change.message == "for 601 s the operator could not look at every channel"


def test_while_the_tunnel_cannot_be_read_it_holds() -> None:
    history = History(looked=BEGIN)

    assert woken(BEGIN + 7000, history=history, channels=None, peeked=None).change is None


def test_once_it_is_not_allowed_any_more_the_bounds_hold_again() -> None:
    found = decide(Policy(min_workers=2), ASLEEP, seen(IDLE, BEGIN), History())

    assert found.change is not None
    assert (found.desired, found.change.cause) == (2, Cause.BOUNDS)


def test_a_woken_object_is_not_asleep_again_at_once() -> None:
    waiting = replace(IDLE, time=BEGIN, peeked=Peeked(BEGIN, "c1"))

    found = looked_at(waiting, *[IDLE] * 60, record=ASLEEP)

    assert changes(found) == [(0, Cause.WOKEN, 0, 1), (41, Cause.ASLEEP, 1, 0)]


def test_a_clock_that_was_set_back_moves_what_is_remembered() -> None:
    history = looked_at(*[IDLE] * 10)[-1].history
    assert history.idle is not None
    asleep = woken(BEGIN + 60).history

    assert history.moved(-100.0).idle == replace(history.idle, since=BEGIN - 100)
    assert asleep.moved(-100.0).looked == (asleep.looked or 0.0) - 100


@pytest.mark.parametrize(
    ("peeked", "fresh"), [(None, False), (Peeked(), False), (Peeked(BEGIN - 600), True), (Peeked(BEGIN - 601), False)]
)
def test_a_look_says_something_for_two_intervals(peeked: Peeked | None, fresh: bool) -> None:
    assert is_fresh(SLEEP, peeked, BEGIN) is fresh
