"""The decision, look by look."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel_operator.autoscale.decision import Cause, Decision, decide
from ots_tunnel_operator.autoscale.figures import Figures
from ots_tunnel_operator.autoscale.history import History
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.autoscale.policy import Policy
from ots_tunnel_operator.autoscale.record import Record

CALM = Figures(0.0, 16, 0.0, 0.5, 1000.0)
LATE = Figures(0.0, 16, 143.0, 0.96, 1000.0)


@dataclass
class Loop:
    """Looks every 15 s unless `seconds` says otherwise; a change is recorded as the operator does it."""

    policy: Policy = field(default_factory=Policy)
    record: Record = field(default_factory=lambda: Record(4))
    history: History = field(default_factory=History)
    now: float = 0.0
    seconds: float = 15.0
    decisions: list[Decision] = field(default_factory=list)

    def look(self, figures: Figures, times: int = 1) -> Decision:
        for _ in range(times):
            self.now += self.seconds
            decision = decide(self.policy, self.record, replace(figures, time=self.now), self.history)
            self.history = decision.history
            if decision.change is not None:
                useless = self.now if decision.change.cause is Cause.INEFFECTIVE else None
                self.record = Record(decision.desired, self.now, useless)
            self.decisions.append(decision)
        return self.decisions[-1]

    def changes(self) -> list[tuple[Cause, int, int]]:
        found = [decision.change for decision in self.decisions if decision.change is not None]
        return [(change.cause, change.before, change.after) for change in found]


def test_a_load_within_the_band_changes_nothing() -> None:
    loop = Loop()

    last = loop.look(CALM, 100)

    assert loop.changes() == []
    assert (last.desired, last.recommended, last.limit) == (4, 4, Limit.NONE)


def test_after_a_long_rollout_a_short_lull_takes_no_worker() -> None:
    """Nobody has seen for ten minutes that fewer workers are enough: for most of them the figures said nothing."""
    loop = Loop()
    loop.look(CALM, 60)
    loop.look(replace(CALM, unsettled="the workers are being replaced"), 60)

    loop.look(replace(CALM, busy=0.1), 20)
    assert loop.changes() == []

    loop.look(replace(CALM, busy=0.1), 25)
    assert loop.changes()[0] == (Cause.IDLE, 4, 2)


def test_a_backlog_scales_up_after_the_window() -> None:
    loop = Loop()

    loop.look(LATE, 10)

    assert loop.changes()[0] == (Cause.BACKLOG, 4, 7)
    first = next(number for number, decision in enumerate(loop.decisions) if decision.change)
    # half a minute until the figures count, 45 s of the window
    assert first == 5
    assert [decision.limit for decision in loop.decisions[:first]] == [Limit.STABILIZATION] * first


def test_the_message_has_the_figures() -> None:
    loop = Loop()

    loop.look(LATE, 6)

    change = loop.decisions[-1].change
    assert change is not None
    assert change.message == (
        "lag 143 s (target 60 s), 1.00 s of changes consumed a second, 4 workers busy 96% (target 70%): "
        "6.5 workers are needed"
    )


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        (
            [(replace(LATE, lag=1000.0), 6)],
            "17.5 workers are needed; 16 within minReplicas, maxReplicas and the channels; one step goes to 8",
        ),
        (
            [(LATE, 5), (replace(LATE, lag=400.0), 1)],
            "39.4 workers are needed; 16 within minReplicas, maxReplicas and the channels; "
            "the fewest within 45 s were 7",
        ),
        (
            [(replace(CALM, busy=0.3), 20), (replace(CALM, busy=0.0), 42)],
            "0.0 workers are needed; 1 within minReplicas, maxReplicas and the channels; the most within 600 s were 2",
        ),
        ([(replace(CALM, lag=None, copies_base=True, channels=2), 45)], "2 channels are left for 4 workers; 2 within"),
    ],
)
def test_the_message_leads_from_the_wish_to_the_number(looks: list[tuple[Figures, int]], told: str) -> None:
    loop = Loop()

    for figures, times in looks:
        loop.look(figures, times)

    messages = [decision.change.message for decision in loop.decisions if decision.change is not None]
    assert told in messages[0]
    assert "more finish sooner" not in messages[0]


def test_the_message_speaks_of_shards_where_there_are_no_channels() -> None:
    loop = Loop(Policy(part="shard"))

    loop.look(replace(LATE, lag=1000.0), 6)

    [message] = [decision.change.message for decision in loop.decisions if decision.change is not None]
    assert "16 within minReplicas, maxReplicas and the shards; one step goes to 8" in message


def test_busy_workers_without_a_lag_get_more() -> None:
    loop = Loop()

    loop.look(replace(CALM, busy=0.95), 6)

    assert loop.changes() == [(Cause.BUSY, 4, 6)]


def test_idle_workers_go_after_ten_minutes_and_one_step_at_a_time() -> None:
    loop = Loop(record=Record(8))

    loop.look(replace(CALM, busy=0.0), 42)
    assert loop.changes() == []
    loop.look(replace(CALM, busy=0.0), 20)

    assert loop.changes() == [(Cause.IDLE, 8, 4), (Cause.IDLE, 4, 2), (Cause.IDLE, 2, 1)]
    assert (loop.decisions[-1].desired, loop.decisions[-1].limit) == (1, Limit.MIN)


def test_a_step_that_is_smaller_than_the_wish_says_so() -> None:
    loop = Loop(record=Record(1))

    loop.look(replace(LATE, lag=1000.0), 6)

    assert loop.changes() == [(Cause.BACKLOG, 1, 3)]
    assert loop.decisions[-1].limit is Limit.STEP


def test_the_number_of_channels_is_the_most() -> None:
    loop = Loop()

    loop.look(replace(LATE, channels=5), 6)

    assert loop.changes() == [(Cause.BACKLOG, 4, 5)]
    assert loop.decisions[-1].limit is Limit.CHANNELS


def test_fewer_channels_take_workers() -> None:
    loop = Loop(record=Record(8))

    loop.look(replace(CALM, channels=5), 50)

    assert loop.changes() == [(Cause.FEWER_CHANNELS, 8, 5)]


def test_bounds_of_the_user_count_at_once_whatever_is_known() -> None:
    loop = Loop(Policy(min_workers=2, max_workers=6), Record(9))

    loop.look(replace(CALM, lag=None, unsettled="channels move"))

    assert loop.changes() == [(Cause.BOUNDS, 9, 6)]


def test_more_than_before_after_an_edit_of_the_least_number() -> None:
    loop = Loop(Policy(min_workers=5), Record(3))

    loop.look(CALM)

    assert loop.changes() == [(Cause.BOUNDS, 3, 5)]


def test_an_unknown_lag_holds_and_is_told_after_three_looks() -> None:
    loop = Loop()
    loop.look(LATE, 4)

    blind = [loop.look(replace(LATE, lag=None)).is_blind for _ in range(4)]

    assert blind == [False, False, True, True]
    assert loop.changes() == []
    assert loop.decisions[-1].limit is Limit.METRICS_UNAVAILABLE
    assert not loop.look(LATE).is_blind


def test_after_three_looks_without_figures_the_windows_begin_anew() -> None:
    loop = Loop(record=Record(8))
    loop.look(replace(CALM, busy=0.0), 41)

    loop.look(replace(CALM, lag=None), 3)
    loop.look(replace(CALM, busy=0.0), 39)

    assert loop.changes() == []


def test_a_number_of_the_past_is_no_recommendation_once_the_lag_is_unknown() -> None:
    loop = Loop()
    loop.look(LATE, 4)

    told = [loop.look(replace(LATE, lag=None)).recommended for _ in range(4)]

    assert told == [7, 7, None, None]


def test_one_lost_answer_begins_no_window_anew() -> None:
    """Of fifty workers one is always slow to answer."""
    loop = Loop(record=Record(8))

    for _ in range(11):
        loop.look(replace(CALM, busy=0.0), 3)
        loop.look(replace(CALM, lag=None))

    assert loop.changes()[0] == (Cause.IDLE, 8, 4)


def test_while_pods_are_missing_no_further_ones_are_asked_for() -> None:
    loop = Loop(record=Record(8))

    last = loop.look(replace(LATE, missing=2), 20)

    assert loop.changes() == []
    assert last.limit is Limit.REBALANCING
    assert "6 workers busy 96%" in last.message


def test_pods_that_are_missing_stay_asked_for_while_it_is_behind() -> None:
    loop = Loop(record=Record(8))

    loop.look(replace(CALM, lag=100.0, busy=0.1, missing=2), 60)

    assert loop.changes() == []


def test_while_pods_are_missing_workers_may_go() -> None:
    loop = Loop(record=Record(8))

    loop.look(replace(CALM, busy=0.0, missing=2), 44)

    assert loop.changes() == [(Cause.IDLE, 8, 4)]


def test_figures_of_a_fleet_that_is_changed_are_not_used() -> None:
    loop = Loop()

    last = loop.look(replace(LATE, unsettled="channels move"), 20)

    assert loop.changes() == []
    assert (last.limit, last.message) == (Limit.REBALANCING, "channels move")


def test_the_next_change_waits_until_the_last_one_has_settled() -> None:
    loop = Loop(Policy(up_window=0, heartbeat=40.0))
    loop.look(replace(LATE, lag=500.0), 3)

    last = loop.look(replace(LATE, lag=500.0), 5)

    assert loop.changes() == [(Cause.BACKLOG, 4, 8)]
    assert last.limit is Limit.COOLDOWN


@pytest.mark.parametrize("part", ["channel", "shard"])
def test_a_scale_up_that_does_not_help_is_taken_back_and_blocks(part: str) -> None:
    loop = Loop(Policy(part=part))

    loop.look(replace(LATE, slowest="c7 of pod-1"), 30)

    assert loop.changes() == [(Cause.BACKLOG, 4, 7), (Cause.INEFFECTIVE, 7, 4)]
    back = next(decision.change for decision in loop.decisions if decision.change and decision.change.after == 4)
    assert "7 workers process 1000 rows/s, 4 processed 1000: more of them do not help" in back.message
    assert f"the slowest {part} is c7 of pod-1" in back.message
    assert loop.decisions[-1].limit is Limit.INEFFECTIVE
    # the partitions have split
    loop.look(replace(LATE, channels=32))
    assert loop.changes()[2:] == [(Cause.BACKLOG, 4, 7)]


def test_a_scale_up_is_judged_by_figures_from_after_it() -> None:
    """Its channels have moved before the next look, and the lag begins to fall: figures from before would hide that."""
    loop = Loop(Policy(heartbeat=5))
    loop.look(LATE, 6)

    for lag in range(143, 0, -10):
        loop.look(replace(LATE, lag=float(lag)))

    assert loop.changes() == [(Cause.BACKLOG, 4, 7)]


def test_a_block_limits_nothing_where_no_more_workers_are_needed() -> None:
    loop = Loop(history=History(blocked_until=14_400.0, ineffective=4))

    assert loop.look(CALM, 30).limit is Limit.NONE


@pytest.mark.parametrize("seconds", [61.0, 90.0, 150.0])
def test_looks_that_are_rare_decide_as_well(seconds: float) -> None:
    """Many objects of one instance wait for their turn: two looks are then further apart than the window is long."""
    loop = Loop(seconds=seconds)

    loop.look(LATE, 3)

    assert loop.changes() == [(Cause.BACKLOG, 4, 7)]


def test_workers_that_never_ran_are_not_found_useless() -> None:
    """No node had room for them: that the rate has not grown says nothing about more workers."""
    loop = Loop()
    loop.look(LATE, 6)

    loop.look(replace(LATE, unsettled="4 of 7 workers are ready"), 40)
    loop.look(replace(LATE, missing=3), 40)

    assert loop.changes() == [(Cause.BACKLOG, 4, 7)]
    # nodes were added: further ones are not blocked
    loop.look(replace(LATE, lag=500.0), 5)
    assert loop.changes()[1:] == [(Cause.BACKLOG, 7, 14)]


def test_a_sink_that_stores_nothing_gets_no_more_workers() -> None:
    loop = Loop()

    last = loop.look(replace(LATE, lag=900.0, rate=0.0, busy=1.0), 30)

    assert loop.changes() == []
    assert last.limit is Limit.NOT_PROGRESSING


def test_an_outage_of_the_sink_says_nothing_about_the_scale_up_before_it() -> None:
    loop = Loop()
    loop.look(LATE, 6)

    loop.look(replace(LATE, rate=0.0), 20)
    loop.look(replace(LATE, rate=2000.0), 4)

    assert Cause.INEFFECTIVE not in {cause for cause, _, _ in loop.changes()}


def test_one_that_must_not_be_taken_back_stays() -> None:
    loop = Loop()
    loop.look(LATE, 6)
    loop.policy = Policy(min_workers=7)

    loop.look(LATE, 20)

    assert loop.changes() == [(Cause.BACKLOG, 4, 7)]


def test_while_existing_rows_are_copied_every_channel_gets_a_worker() -> None:
    loop = Loop()

    loop.look(replace(CALM, lag=None, copies_base=True, channels=12), 20)

    assert loop.changes() == [(Cause.BASE_DATA, 4, 8), (Cause.BASE_DATA, 8, 12)]
    assert loop.decisions[-1].message.startswith("existing rows are copied: 12 channels are left for 12 workers")


def test_passes_between_two_evaluations_change_nothing() -> None:
    loop = Loop()
    loop.look(LATE, 5)
    before = loop.history

    decision = decide(loop.policy, loop.record, replace(LATE, time=loop.now + 5), before)

    assert decision.history == before
    assert (decision.desired, decision.limit) == (4, Limit.STABILIZATION)


def test_after_a_restart_nothing_changes_before_a_window_is_full() -> None:
    loop = Loop(record=Record(8))
    loop.look(replace(CALM, busy=0.0), 41)
    loop.history = History()

    loop.look(replace(CALM, busy=0.0), 41)
    assert loop.changes() == []
    loop.look(replace(CALM, busy=0.0), 2)

    assert loop.changes() == [(Cause.IDLE, 8, 4)]


def test_a_clock_that_is_set_back_keeps_the_windows() -> None:
    loop = Loop()
    loop.look(LATE, 5)
    loop.history, loop.now = loop.history.moved(-3600.0), loop.now - 3600.0

    loop.look(LATE)

    assert loop.changes() == [(Cause.BACKLOG, 4, 7)]


def test_an_empty_history_can_be_moved() -> None:
    assert History().moved(5.0).evaluated is None


FIGURES = st.builds(
    Figures,
    time=st.just(0.0),
    channels=st.none() | st.integers(0, 40),
    lag=st.none() | st.floats(0, 1e6),
    busy=st.none() | st.floats(0, 1),
    rate=st.none() | st.floats(0, 1e6),
    copies_base=st.booleans(),
    unsettled=st.sampled_from(["", "", "", "channels move"]),
    missing=st.just(0),
)
POLICIES = st.builds(
    lambda least, more, **windows: Policy(min_workers=least, max_workers=least + more, **windows),
    st.integers(1, 10),
    st.integers(0, 20),
    up_window=st.sampled_from([0.0, 45.0]),
    down_window=st.sampled_from([0.0, 60.0, 600.0]),
)
RUNS = st.lists(st.tuples(FIGURES, st.integers(1, 8)), max_size=12)


def told(policy: Policy, workers: int, run: Iterable[tuple[Figures, int]]) -> Iterable[tuple[Figures, Decision]]:
    loop = Loop(policy, Record(workers))
    for figures, times in run:
        for _ in range(times):
            yield figures, loop.look(figures)


@given(POLICIES, st.integers(1, 60), RUNS)
def test_never_0_and_never_outside_the_bounds(policy: Policy, workers: int, run: list[tuple[Figures, int]]) -> None:
    for _, decision in told(policy, workers, run):
        assert 1 <= decision.desired <= policy.max_workers


@given(POLICIES, st.integers(1, 60), RUNS)
def test_no_growth_beyond_the_channels(policy: Policy, workers: int, run: list[tuple[Figures, int]]) -> None:
    for figures, decision in told(policy, workers, run):
        change = decision.change
        if change is not None and change.after > change.before:
            assert figures.channels is not None
            assert change.after <= max(1, min(policy.max_workers, figures.channels))


@given(POLICIES, st.integers(1, 60), RUNS)
def test_unknown_or_unsettled_figures_change_nothing(
    policy: Policy, workers: int, run: list[tuple[Figures, int]]
) -> None:
    for figures, decision in told(policy, workers, run):
        is_unknown = figures.channels is None or (figures.lag is None and not figures.copies_base)
        if is_unknown or figures.unsettled:
            assert decision.change is None or decision.change.cause is Cause.BOUNDS


@given(POLICIES, st.integers(1, 60), RUNS)
def test_nothing_shrinks_while_it_is_behind(policy: Policy, workers: int, run: list[tuple[Figures, int]]) -> None:
    for figures, decision in told(policy, workers, run):
        change = decision.change
        if change is not None and change.cause is Cause.IDLE:
            assert figures.lag is not None
            assert figures.lag <= policy.target_lag or change.after >= change.before


@given(POLICIES, st.integers(1, 60), RUNS)
def test_a_number_that_is_decided_is_not_corrected_by_the_bounds(
    policy: Policy, workers: int, run: list[tuple[Figures, int]]
) -> None:
    decided = [decision for _, decision in told(policy, workers, run)]
    for before, after in itertools.pairwise(decided):
        if before.change is not None and before.change.cause is not Cause.BOUNDS and after.change is not None:
            assert after.change.cause is not Cause.BOUNDS or after.change.after > after.change.before


@pytest.mark.parametrize("busy", [0.2, 0.5, 0.95])
@given(st.integers(1, 16), st.floats(0, 5000), st.floats(0, 5000))
def test_the_recommendation_is_monotone_in_the_lag(busy: float, workers: int, lag: float, more: float) -> None:
    low, high = Loop(record=Record(workers)), Loop(record=Record(workers))

    for loop, late in ((low, lag), (high, lag + more)):
        loop.look(Figures(0.0, 16, late, busy, 1000.0), 3)

    few, many = low.decisions[-1].recommended, high.decisions[-1].recommended
    assert few is not None
    assert many is not None
    assert few <= many
