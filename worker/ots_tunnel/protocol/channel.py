"""State machine of one channel's connection.

Theory of operation
-------------------
Parts. A `Connection` is a state and the channel as last seen or reported. An `Event` is a heartbeat answer, a change in
the connection's pipeline, or the worker's wish to drain. `step` looks up (state, trigger) in `TRANSITIONS` and returns
the next connection with its effects: start a pipeline, stop it, report the channel. The shell (`worker.channel`) holds
the only connection of a channel, carries out the effects, and feeds the events. `assignment.merge` runs before it.

Cases, in the order in which `step` checks them:

1. A notification of another channel, or an event that the table does not list, raises `InvalidTransition`: a mistake in
   the shell. The connection does not change.
2. A notification with a lower version than the connection's is stale: it was sent before our last report arrived. It
   changes nothing.
3. Any other event takes the table's transition. A report raises the version by 1, because the service accepts a
   reported channel only with a higher version than its own (docs/protocol.md 5.6).

A pipeline stops in one of two ways. DRAIN means that we still own the channel: finish or abandon the batch, write the
checkpoint, report CLOSE. OWNERSHIP_LOST means that another client may own it: stop at once, write nothing. A lost
channel overrides a drain, never the reverse.

The shell keeps three rules:

- It feeds `PipelineFinished` only after the checkpoint `finished` is durable: the report TERMINATED follows, and a
  terminated channel is never read again.
- It feeds `PipelineStopped` and `PipelineFailed` only when no write is in flight: the report CLOSE follows, and the
  next owner may write as soon as the service has it.
- It keeps a connection until the channel vanishes from the answers or `merge` asks for a fresh connection.

Example. The answer {c, version 2, OPEN} in WAIT starts a pipeline: CONNECTING. `Connected` makes it RUNNING. The answer
{c, 3, CLOSING} stops it with DRAIN: CLOSING. The same answer again changes nothing. `PipelineStopped` reports
{c, 4, CLOSE}: CLOSED. If {c, 3, CLOSING} arrives once more, it is older than version 4 and is ignored. If
{c, 5, CLOSING} arrives, the service missed the report, and {c, 6, CLOSE} repeats it.

The vendor's workers notice the end of a pipeline at the next heartbeat; here the report is made at once
(docs/protocol.md 5.10). Source: docs/protocol.md 5.6, 5.7.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from ots_tunnel.errors import InvalidTransition
from ots_tunnel.model import Channel, ChannelStatus


class State(enum.Enum):
    """State of a connection; the three closed states differ in their cause."""

    WAIT = "wait"
    CONNECTING = "connecting"
    RUNNING = "running"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "closed by failure"
    FINISHED = "closed, data finished"


class StopReason(enum.IntEnum):
    """Why a pipeline stops, by rank: a higher reason may replace a lower one, never the reverse."""

    DRAIN = 1
    """Finish or abandon the batch, write the checkpoint, then feed `PipelineStopped`."""
    OWNERSHIP_LOST = 2
    """Stop at once; no checkpoint may be written."""


@dataclass(frozen=True, slots=True)
class Notified:
    """The channel as the last heartbeat answer has it, after the merge."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class Vanished:
    """The channel is no longer in the heartbeat answers: it belongs to another client."""


@dataclass(frozen=True, slots=True)
class Drain:
    """The worker returns the channel of its own accord."""


@dataclass(frozen=True, slots=True)
class Connected:
    """The checkpoint was read; the pipeline starts there."""


@dataclass(frozen=True, slots=True)
class ConnectFailed:
    """The checkpoint could not be read, so there is no pipeline."""


@dataclass(frozen=True, slots=True)
class PipelineFinished:
    """The channel was read to its end, and the checkpoint `finished` is durable."""


@dataclass(frozen=True, slots=True)
class PipelineFailed:
    """The pipeline ended on an error."""


@dataclass(frozen=True, slots=True)
class PipelineStopped:
    """The pipeline ended after `StopPipeline`, with its last checkpoint written."""


Event = Notified | Vanished | Drain | Connected | ConnectFailed | PipelineFinished | PipelineFailed | PipelineStopped


@dataclass(frozen=True, slots=True)
class StartPipeline:
    """Read the checkpoint, then read and process from there."""


@dataclass(frozen=True, slots=True)
class StopPipeline:
    """Stop reading and processing."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class Report:
    """Carry this channel in the next heartbeat, which may be sent early."""

    channel: Channel


Effect = StartPipeline | StopPipeline | Report


@dataclass(frozen=True, slots=True)
class Connection:
    """One channel's connection: its state, and the channel as last seen or reported."""

    channel: Channel
    state: State = State.WAIT

    @property
    def is_over(self) -> bool:
        """Whether no pipeline runs and nothing is left to report."""
        closed = self.state in (State.CLOSED, State.FAILED, State.FINISHED)
        return closed and self.channel.status in (ChannelStatus.CLOSE, ChannelStatus.TERMINATED)


class Outcome(enum.Enum):
    """Effect of a transition besides the new state."""

    NOTHING = enum.auto()
    START = enum.auto()
    DRAIN = enum.auto()
    ABANDON = enum.auto()
    REPORT_CLOSE = enum.auto()
    REPORT_TERMINATED = enum.auto()


#: The channel's status in a heartbeat answer, or the type of any other event.
Trigger = (
    ChannelStatus
    | type[Vanished | Drain | Connected | ConnectFailed | PipelineFinished | PipelineFailed | PipelineStopped]
)

_Table = dict[tuple[State, Trigger], tuple[State, Outcome]]

_WAIT: _Table = {
    (State.WAIT, ChannelStatus.OPEN): (State.CONNECTING, Outcome.START),
    (State.WAIT, ChannelStatus.CLOSING): (State.CLOSED, Outcome.REPORT_CLOSE),
    (State.WAIT, ChannelStatus.CLOSE): (State.CLOSED, Outcome.NOTHING),
    (State.WAIT, ChannelStatus.TERMINATED): (State.CLOSED, Outcome.NOTHING),
    (State.WAIT, Vanished): (State.CLOSED, Outcome.NOTHING),
    (State.WAIT, Drain): (State.CLOSED, Outcome.REPORT_CLOSE),
}

_CONNECTING: _Table = {
    (State.CONNECTING, ChannelStatus.OPEN): (State.CONNECTING, Outcome.NOTHING),
    (State.CONNECTING, ChannelStatus.CLOSING): (State.CLOSING, Outcome.DRAIN),
    (State.CONNECTING, ChannelStatus.CLOSE): (State.CLOSED, Outcome.ABANDON),
    (State.CONNECTING, ChannelStatus.TERMINATED): (State.CLOSED, Outcome.ABANDON),
    (State.CONNECTING, Vanished): (State.CLOSED, Outcome.ABANDON),
    (State.CONNECTING, Drain): (State.CLOSING, Outcome.DRAIN),
    (State.CONNECTING, Connected): (State.RUNNING, Outcome.NOTHING),
    (State.CONNECTING, ConnectFailed): (State.FAILED, Outcome.REPORT_CLOSE),
}

_RUNNING: _Table = {
    (State.RUNNING, ChannelStatus.OPEN): (State.RUNNING, Outcome.NOTHING),
    (State.RUNNING, ChannelStatus.CLOSING): (State.CLOSING, Outcome.DRAIN),
    (State.RUNNING, ChannelStatus.CLOSE): (State.CLOSED, Outcome.ABANDON),
    (State.RUNNING, ChannelStatus.TERMINATED): (State.CLOSED, Outcome.ABANDON),
    (State.RUNNING, Vanished): (State.CLOSED, Outcome.ABANDON),
    (State.RUNNING, Drain): (State.CLOSING, Outcome.DRAIN),
    (State.RUNNING, PipelineFinished): (State.FINISHED, Outcome.REPORT_TERMINATED),
    (State.RUNNING, PipelineFailed): (State.FAILED, Outcome.REPORT_CLOSE),
}

_CLOSING: _Table = {
    (State.CLOSING, ChannelStatus.OPEN): (State.CLOSING, Outcome.NOTHING),
    (State.CLOSING, ChannelStatus.CLOSING): (State.CLOSING, Outcome.NOTHING),
    (State.CLOSING, ChannelStatus.CLOSE): (State.CLOSED, Outcome.ABANDON),
    (State.CLOSING, ChannelStatus.TERMINATED): (State.CLOSED, Outcome.ABANDON),
    (State.CLOSING, Vanished): (State.CLOSED, Outcome.ABANDON),
    (State.CLOSING, Drain): (State.CLOSING, Outcome.NOTHING),
    (State.CLOSING, Connected): (State.CLOSING, Outcome.NOTHING),
    (State.CLOSING, ConnectFailed): (State.FAILED, Outcome.REPORT_CLOSE),
    (State.CLOSING, PipelineFinished): (State.FINISHED, Outcome.REPORT_TERMINATED),
    (State.CLOSING, PipelineFailed): (State.FAILED, Outcome.REPORT_CLOSE),
    (State.CLOSING, PipelineStopped): (State.CLOSED, Outcome.REPORT_CLOSE),
}


def _closed(state: State, report: Outcome) -> _Table:
    return {
        (state, ChannelStatus.OPEN): (state, report),
        (state, ChannelStatus.CLOSING): (state, report),
        (state, ChannelStatus.CLOSE): (state, Outcome.NOTHING),
        (state, ChannelStatus.TERMINATED): (state, Outcome.NOTHING),
        (state, Vanished): (state, Outcome.NOTHING),
        (state, Drain): (state, Outcome.NOTHING),
    }


# An abandoned pipeline still ends; its end changes nothing.
_ABANDONED: _Table = {
    (State.CLOSED, Connected): (State.CLOSED, Outcome.NOTHING),
    (State.CLOSED, ConnectFailed): (State.CLOSED, Outcome.NOTHING),
    (State.CLOSED, PipelineFinished): (State.CLOSED, Outcome.NOTHING),
    (State.CLOSED, PipelineFailed): (State.CLOSED, Outcome.NOTHING),
    (State.CLOSED, PipelineStopped): (State.CLOSED, Outcome.NOTHING),
}

#: (state, trigger) -> (next state, outcome). The four statuses are the matrix of docs/protocol.md 5.7; a failed
#: connect is its row FailedConnect. A missing pair cannot happen.
TRANSITIONS: Final[Mapping[tuple[State, Trigger], tuple[State, Outcome]]] = MappingProxyType(
    _WAIT
    | _CONNECTING
    | _RUNNING
    | _CLOSING
    | _closed(State.CLOSED, Outcome.REPORT_CLOSE)
    | _closed(State.FAILED, Outcome.REPORT_CLOSE)
    | _closed(State.FINISHED, Outcome.REPORT_TERMINATED)
    | _ABANDONED
)


def step(connection: Connection, event: Event) -> tuple[Connection, tuple[Effect, ...]]:
    """The connection after an event, and the effects that the shell carries out.

    A notification older than the channel last seen or reported changes nothing.

    Raises:
        InvalidTransition: the event cannot happen in this state, or is about another channel.
    """
    if isinstance(event, Notified):
        if event.channel.channel_id != connection.channel.channel_id:
            raise InvalidTransition(connection, event)
        if event.channel.version < connection.channel.version:
            return connection, ()
    trigger = event.channel.status if isinstance(event, Notified) else type(event)
    found = TRANSITIONS.get((connection.state, trigger))
    if found is None:
        raise InvalidTransition(connection.state, event)
    state, outcome = found
    channel = event.channel if isinstance(event, Notified) else connection.channel
    return _act(state, outcome, channel)


def _act(state: State, outcome: Outcome, channel: Channel) -> tuple[Connection, tuple[Effect, ...]]:
    match outcome:
        case Outcome.NOTHING:
            return Connection(channel, state), ()
        case Outcome.START:
            return Connection(channel, state), (StartPipeline(),)
        case Outcome.DRAIN:
            return Connection(channel, state), (StopPipeline(StopReason.DRAIN),)
        case Outcome.ABANDON:
            return Connection(channel, state), (StopPipeline(StopReason.OWNERSHIP_LOST),)
        case Outcome.REPORT_CLOSE:
            return _report(state, channel, ChannelStatus.CLOSE)
        case Outcome.REPORT_TERMINATED:  # pragma: no branch - there is no other outcome
            return _report(state, channel, ChannelStatus.TERMINATED)


def _report(state: State, channel: Channel, status: ChannelStatus) -> tuple[Connection, tuple[Effect, ...]]:
    reported = replace(channel, version=channel.version + 1, status=status)
    return Connection(reported, state), (Report(reported),)
