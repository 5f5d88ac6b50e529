"""Every state and trigger of the channel machine, against the matrix of docs/protocol.md 5.7."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import InvalidTransition
from ots_tunnel.model import Channel, ChannelId, ChannelStatus
from ots_tunnel.protocol.channel import (
    TRANSITIONS,
    Connected,
    ConnectFailed,
    Connection,
    Drain,
    Effect,
    Event,
    Notified,
    PipelineFailed,
    PipelineFinished,
    PipelineStopped,
    Report,
    StartPipeline,
    State,
    StopPipeline,
    StopReason,
    Vanished,
    step,
)

ID = ChannelId("channel-1")
OPEN, CLOSING = ChannelStatus.OPEN, ChannelStatus.CLOSING
CLOSE, TERMINATED = ChannelStatus.CLOSE, ChannelStatus.TERMINATED
SEEN, NOW = 4, 5

START = (StartPipeline(),)
DRAIN = (StopPipeline(StopReason.DRAIN),)
ABANDON = (StopPipeline(StopReason.OWNERSHIP_LOST),)


def channel(version: int, status: ChannelStatus) -> Channel:
    return Channel(ID, version, status)


def reports(version: int, status: ChannelStatus) -> tuple[Effect, ...]:
    return (Report(channel(version, status)),)


# current state, incoming status at NOW -> next state, version and status afterwards, effects
MATRIX = [
    (State.WAIT, OPEN, State.CONNECTING, (NOW, OPEN), START),
    (State.WAIT, CLOSING, State.CLOSED, (NOW + 1, CLOSE), reports(NOW + 1, CLOSE)),
    (State.WAIT, CLOSE, State.CLOSED, (NOW, CLOSE), ()),
    (State.WAIT, TERMINATED, State.CLOSED, (NOW, TERMINATED), ()),
    (State.CONNECTING, OPEN, State.CONNECTING, (NOW, OPEN), ()),
    (State.CONNECTING, CLOSING, State.CLOSING, (NOW, CLOSING), DRAIN),
    (State.CONNECTING, CLOSE, State.CLOSED, (NOW, CLOSE), ABANDON),
    (State.CONNECTING, TERMINATED, State.CLOSED, (NOW, TERMINATED), ABANDON),
    (State.RUNNING, OPEN, State.RUNNING, (NOW, OPEN), ()),
    (State.RUNNING, CLOSING, State.CLOSING, (NOW, CLOSING), DRAIN),
    (State.RUNNING, CLOSE, State.CLOSED, (NOW, CLOSE), ABANDON),
    (State.RUNNING, TERMINATED, State.CLOSED, (NOW, TERMINATED), ABANDON),
    (State.CLOSING, OPEN, State.CLOSING, (NOW, OPEN), ()),
    (State.CLOSING, CLOSING, State.CLOSING, (NOW, CLOSING), ()),
    (State.CLOSING, CLOSE, State.CLOSED, (NOW, CLOSE), ABANDON),
    (State.CLOSING, TERMINATED, State.CLOSED, (NOW, TERMINATED), ABANDON),
    (State.CLOSED, OPEN, State.CLOSED, (NOW + 1, CLOSE), reports(NOW + 1, CLOSE)),
    (State.CLOSED, CLOSING, State.CLOSED, (NOW + 1, CLOSE), reports(NOW + 1, CLOSE)),
    (State.CLOSED, CLOSE, State.CLOSED, (NOW, CLOSE), ()),
    (State.CLOSED, TERMINATED, State.CLOSED, (NOW, TERMINATED), ()),
    (State.FAILED, OPEN, State.FAILED, (NOW + 1, CLOSE), reports(NOW + 1, CLOSE)),
    (State.FAILED, CLOSING, State.FAILED, (NOW + 1, CLOSE), reports(NOW + 1, CLOSE)),
    (State.FAILED, CLOSE, State.FAILED, (NOW, CLOSE), ()),
    (State.FAILED, TERMINATED, State.FAILED, (NOW, TERMINATED), ()),
    (State.FINISHED, OPEN, State.FINISHED, (NOW + 1, TERMINATED), reports(NOW + 1, TERMINATED)),
    (State.FINISHED, CLOSING, State.FINISHED, (NOW + 1, TERMINATED), reports(NOW + 1, TERMINATED)),
    (State.FINISHED, CLOSE, State.FINISHED, (NOW, CLOSE), ()),
    (State.FINISHED, TERMINATED, State.FINISHED, (NOW, TERMINATED), ()),
]

# current state, other event -> next state, effects; a report carries SEEN + 1
OTHERS: list[tuple[State, Event, State, tuple[Effect, ...]]] = [
    (State.WAIT, Drain(), State.CLOSED, reports(SEEN + 1, CLOSE)),
    (State.WAIT, Vanished(), State.CLOSED, ()),
    (State.CONNECTING, Connected(), State.RUNNING, ()),
    (State.CONNECTING, ConnectFailed(), State.FAILED, reports(SEEN + 1, CLOSE)),
    (State.CONNECTING, Drain(), State.CLOSING, DRAIN),
    (State.CONNECTING, Vanished(), State.CLOSED, ABANDON),
    (State.RUNNING, PipelineFinished(), State.FINISHED, reports(SEEN + 1, TERMINATED)),
    (State.RUNNING, PipelineFailed(), State.FAILED, reports(SEEN + 1, CLOSE)),
    (State.RUNNING, Drain(), State.CLOSING, DRAIN),
    (State.RUNNING, Vanished(), State.CLOSED, ABANDON),
    (State.CLOSING, Connected(), State.CLOSING, ()),
    (State.CLOSING, ConnectFailed(), State.FAILED, reports(SEEN + 1, CLOSE)),
    (State.CLOSING, PipelineFinished(), State.FINISHED, reports(SEEN + 1, TERMINATED)),
    (State.CLOSING, PipelineFailed(), State.FAILED, reports(SEEN + 1, CLOSE)),
    (State.CLOSING, PipelineStopped(), State.CLOSED, reports(SEEN + 1, CLOSE)),
    (State.CLOSING, Drain(), State.CLOSING, ()),
    (State.CLOSING, Vanished(), State.CLOSED, ABANDON),
    (State.CLOSED, Connected(), State.CLOSED, ()),
    (State.CLOSED, ConnectFailed(), State.CLOSED, ()),
    (State.CLOSED, PipelineFinished(), State.CLOSED, ()),
    (State.CLOSED, PipelineFailed(), State.CLOSED, ()),
    (State.CLOSED, PipelineStopped(), State.CLOSED, ()),
    (State.CLOSED, Drain(), State.CLOSED, ()),
    (State.CLOSED, Vanished(), State.CLOSED, ()),
    (State.FAILED, Drain(), State.FAILED, ()),
    (State.FAILED, Vanished(), State.FAILED, ()),
    (State.FINISHED, Drain(), State.FINISHED, ()),
    (State.FINISHED, Vanished(), State.FINISHED, ()),
]

IMPOSSIBLE: list[tuple[State, Event]] = [
    *((state, event) for state in (State.WAIT, State.RUNNING) for event in (Connected(), ConnectFailed())),
    *((state, event) for state in (State.WAIT, State.CONNECTING) for event in (PipelineFinished(), PipelineFailed())),
    *((state, PipelineStopped()) for state in (State.WAIT, State.CONNECTING, State.RUNNING)),
    *((state, Notified(channel(NOW, ChannelStatus.WAIT))) for state in State),
    *(
        (state, event)
        for state in (State.FAILED, State.FINISHED)
        for event in (Connected(), ConnectFailed(), PipelineFinished(), PipelineFailed(), PipelineStopped())
    ),
]


def connection(state: State) -> Connection:
    return Connection(channel(SEEN, OPEN), state)


@pytest.mark.parametrize(("state", "status", "after", "left", "effects"), MATRIX)
def test_notification_follows_the_matrix(
    state: State, status: ChannelStatus, after: State, left: tuple[int, ChannelStatus], effects: tuple[Effect, ...]
) -> None:
    result = step(connection(state), Notified(channel(NOW, status)))

    assert result == (Connection(channel(*left), after), effects)


@pytest.mark.parametrize(("state", "event", "after", "effects"), OTHERS)
def test_other_events_follow_the_table(state: State, event: Event, after: State, effects: tuple[Effect, ...]) -> None:
    result, found = step(connection(state), event)

    assert (result.state, found) == (after, effects)
    reported = [effect.channel for effect in effects if isinstance(effect, Report)]
    assert result.channel == (reported[0] if reported else channel(SEEN, OPEN))


@pytest.mark.parametrize(("state", "event"), IMPOSSIBLE)
def test_impossible_event_raises_and_names_both(state: State, event: Event) -> None:
    with pytest.raises(InvalidTransition) as caught:
        step(connection(state), event)

    assert (caught.value.state, caught.value.event) == (state, event)


def test_every_pair_is_covered_by_a_test() -> None:
    tested = {(state, status) for state, status, *_ in MATRIX} | {(state, type(event)) for state, event, *_ in OTHERS}

    assert tested == set(TRANSITIONS)
    assert len(TRANSITIONS) + len(IMPOSSIBLE) == len(State) * (len(ChannelStatus) + 7)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("status", ChannelStatus)
def test_older_notification_is_ignored(state: State, status: ChannelStatus) -> None:
    before = connection(state)

    assert step(before, Notified(channel(SEEN - 1, status))) == (before, ())


def test_notification_of_another_channel_is_refused() -> None:
    with pytest.raises(InvalidTransition):
        step(connection(State.WAIT), Notified(Channel(ChannelId("channel-2"), NOW, OPEN)))


def test_a_closed_connection_is_over_once_its_channel_is() -> None:
    closed = Connection(channel(SEEN, CLOSE), State.FAILED)
    running = Connection(channel(SEEN, OPEN), State.RUNNING)

    assert closed.is_over
    assert not running.is_over
