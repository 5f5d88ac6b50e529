"""Every state and event of a shard's machine, and what the table as a whole keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.errors import InvalidTransition
from ots_tunnel.stream.decide.consumer import TRANSITIONS, Effect, Event, State, step

OVER = (State.HANDED_OVER, State.LOST)
#: Rounds of the worker come in every state.
ROUNDS = (Event.STOLEN, Event.STOPPED, Event.LEASE_LOST)
#: The work is over.
ENDS = (Event.FAILED, Event.ENDED, Event.DRAINED, Event.OPENED_AT_END, Event.DONE, Event.RESTART)

WAITING, OPENING, READING, ENDING = State.WAITING, State.OPENING, State.READING, State.ENDING
DRAINING, GIVING, FAILED = State.DRAINING, State.HANDING_OVER, State.FAILED

MATRIX = [
    (WAITING, Event.PARENTS_DONE, OPENING, Effect.OPEN),
    (WAITING, Event.STOLEN, GIVING, Effect.HAND_OVER),
    (WAITING, Event.LEASE_LOST, State.LOST, None),
    (OPENING, Event.OPENED, READING, None),
    (OPENING, Event.OPENED_AT_END, State.FINISHED, Effect.SYNC),
    (OPENING, Event.FAILED, FAILED, None),
    (OPENING, Event.STOLEN, DRAINING, Effect.DRAIN),
    (OPENING, Event.LEASE_LOST, State.LOST, Effect.ABANDON),
    (READING, Event.END_REACHED, ENDING, Effect.END),
    (READING, Event.FAILED, FAILED, None),
    (READING, Event.DONE, State.RESTING, None),
    (READING, Event.RESTART, OPENING, Effect.OPEN),
    (READING, Event.STOLEN, DRAINING, Effect.DRAIN),
    (READING, Event.LEASE_LOST, State.LOST, Effect.ABANDON),
    (ENDING, Event.ENDED, State.FINISHED, Effect.SYNC),
    (ENDING, Event.FAILED, FAILED, None),
    (ENDING, Event.STOLEN, ENDING, None),
    (ENDING, Event.LEASE_LOST, State.LOST, Effect.ABANDON),
    (DRAINING, Event.OPENED, DRAINING, None),
    (DRAINING, Event.OPENED_AT_END, GIVING, Effect.HAND_OVER),
    (DRAINING, Event.END_REACHED, ENDING, Effect.END),
    (DRAINING, Event.FAILED, GIVING, Effect.HAND_OVER),
    (DRAINING, Event.DONE, GIVING, Effect.HAND_OVER),
    (DRAINING, Event.RESTART, GIVING, Effect.HAND_OVER),
    (DRAINING, Event.DRAINED, GIVING, Effect.HAND_OVER),
    (DRAINING, Event.STOLEN, DRAINING, None),
    (DRAINING, Event.LEASE_LOST, State.LOST, Effect.ABANDON),
    (GIVING, Event.GIVEN, State.HANDED_OVER, None),
    (GIVING, Event.FAILED, GIVING, None),
    (GIVING, Event.RETRY, GIVING, None),
    (GIVING, Event.PARENTS_DONE, GIVING, None),
    (GIVING, Event.STOLEN, GIVING, Effect.HAND_OVER),
    (GIVING, Event.LEASE_LOST, State.LOST, None),
    (FAILED, Event.RETRY, OPENING, Effect.OPEN),
    (FAILED, Event.STOLEN, GIVING, Effect.HAND_OVER),
    (FAILED, Event.LEASE_LOST, State.LOST, None),
    (State.FINISHED, Event.STOLEN, GIVING, Effect.HAND_OVER),
    (State.FINISHED, Event.LEASE_LOST, State.LOST, None),
    (State.RESTING, Event.STOLEN, GIVING, Effect.HAND_OVER),
    (State.RESTING, Event.LEASE_LOST, State.LOST, None),
]


@pytest.mark.parametrize(
    ("state", "event", "after", "effect"), MATRIX, ids=[f"{state.name} {event.name}" for state, event, *_ in MATRIX]
)
def test_an_event_leads_to(state: State, event: Event, after: State, effect: Effect | None) -> None:
    assert step(state, event) == (after, effect)


def test_the_matrix_has_every_transition() -> None:
    listed = {(state, event) for state, event, *_ in MATRIX}
    stops = {(state, Event.STOPPED) for state in State}

    assert {pair for pair in TRANSITIONS if pair[0] not in OVER} - stops == listed


def test_a_stop_is_as_a_theft() -> None:
    for state in State:
        assert step(state, Event.STOPPED) == step(state, Event.STOLEN)


@pytest.mark.parametrize("state", State)
def test_rounds_come_in_every_state(state: State) -> None:
    for event in ROUNDS:
        after, _ = step(state, event)
        assert state not in OVER or after is state


@pytest.mark.parametrize("state", OVER)
def test_what_is_over_stays_so(state: State) -> None:
    assert state.is_over
    for event in Event:
        assert step(state, event) == (state, None)


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (WAITING, Event.OPENED),
        (READING, Event.ENDED),
        (READING, Event.DRAINED),
        (FAILED, Event.OPENED),
        (State.FINISHED, Event.FAILED),
    ],
)
def test_an_impossible_event_names_both(state: State, event: Event) -> None:
    with pytest.raises(InvalidTransition, match=f"from {state.name} on {event.name}"):
        step(state, event)


def test_a_checkpoint_may_be_stored_only_while_work_is_under_way() -> None:
    assert {state for state in State if state.may_checkpoint} == {OPENING, READING, ENDING, DRAINING}


@given(st.lists(st.sampled_from(Event), max_size=30))
def test_any_story_keeps_the_rules(events: list[Event]) -> None:
    """Work runs in the states that may store a checkpoint, and a lease is handed over only when none runs."""
    state, running = State.WAITING, False
    for event in events:
        if (state, event) not in TRANSITIONS:
            continue
        before = state
        state, effect = step(state, event)
        if event in ENDS and before.may_checkpoint:
            running = False
        if effect is Effect.OPEN:
            assert not running
            running = True
        elif effect is Effect.ABANDON:
            assert running
            running = False
        if effect is Effect.HAND_OVER:
            assert not running
        assert running == state.may_checkpoint, (before, event, state)
