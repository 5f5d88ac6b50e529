"""State machine of one shard on the worker that holds its lease.

Theory of operation
-------------------
Parts. A `State`; an `Event` from the leases (stolen, lost), from the worker (it stops) or from the shard's own work; an
`Effect` that the shell carries out. `step` looks up (state, event) in `TRANSITIONS`. The shell holds one state per held
lease, and begins a new one at WAITING whenever it takes the lease again.

The states are those of the Java library's consumer, with the reason of a shutdown in them:

    WAITING        WAITING_ON_PARENT_SHARDS
    OPENING        INITIALIZING: the checkpoint is read
    READING        PROCESSING: pages are read and written to the sink
    ENDING         SHUTTING_DOWN, TERMINATE: everything is read and stored; SHARD_END is being stored
    DRAINING       SHUTTING_DOWN, STOLEN: the batch and its checkpoint are being finished
    HANDING_OVER   SHUTTING_DOWN, STOLEN: nothing runs; the lease is being given away
    FAILED         the work ended by an error and begins again after a pause; the library ends the whole worker
    FINISHED       SHUTDOWN_COMPLETE, TERMINATE: the lease stays held and renewed
    RESTING        SHUTDOWN_COMPLETE, PROCESS_DONE: as FINISHED, but a later owner reads on
    HANDED_OVER    SHUTDOWN_COMPLETE, STOLEN
    LOST           SHUTDOWN_COMPLETE, ZOMBIE: another worker may own the lease; nothing may be written

The library's PROCESS_DONE and PROCESS_RESTART are wishes of a user's processor: DONE and RESTART. A sink has no words
for them.

Rules of the shell:

- It feeds ENDED only when SHARD_END is stored, and DRAINED, FAILED, DONE and RESTART only when no write is in flight:
  the next owner may write as soon as the lease is handed over.
- END asks for nothing to begin: the work that has reached the end goes on to store SHARD_END.
- PARENTS_DONE may come late, since parents are looked up by calls.
- It feeds STOLEN in every round in which the lease has a thief, and STOPPED in every round once the worker stops. So
  ENDING can ignore both: when SHARD_END is stored, the next round hands the finished lease over.
- ABANDON is carried out at once: close the fence, cancel the work. HAND_OVER does nothing while one is under way.

What differs from the library: a shard that waits for its parents, and one without any work, is handed over at once. The
library holds the first until its parents are done, and the second without end.

Example. WAITING, PARENTS_DONE: OPENING, with OPEN. OPENED: READING. STOLEN: DRAINING, with DRAIN; the same again in the
next round changes nothing. DRAINED: HANDING_OVER, with HAND_OVER. GIVEN: HANDED_OVER. Had the lease expired meanwhile,
LEASE_LOST would have led to LOST, with ABANDON.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ots_tunnel.errors import InvalidTransition


class State(enum.Enum):
    """State of a shard on this worker."""

    WAITING = "waiting for parent shards"
    OPENING = "opening"
    READING = "reading"
    ENDING = "ending"
    DRAINING = "draining"
    HANDING_OVER = "handing over"
    FAILED = "failed"
    FINISHED = "finished"
    RESTING = "not read further"
    HANDED_OVER = "handed over"
    LOST = "lost"

    @property
    def may_checkpoint(self) -> bool:
        """Whether a checkpoint may be stored: work is under way, and the lease is ours."""
        return self in (State.OPENING, State.READING, State.ENDING, State.DRAINING)

    @property
    def is_over(self) -> bool:
        """Whether this worker no longer holds the lease."""
        return self in (State.HANDED_OVER, State.LOST)


class Event(enum.Enum):
    """What happened."""

    PARENTS_DONE = "every parent is at SHARD_END, or dropped"
    OPENED = "the checkpoint was read: the shard is read from there"
    OPENED_AT_END = "the checkpoint was read: it is SHARD_END"
    END_REACHED = "the shard was read to its end, and the sink has stored everything"
    ENDED = "SHARD_END is stored"
    FAILED = "the work ended by an error, or could not begin"
    RETRY = "the pause after a failure is over"
    STOLEN = "another worker has asked for the lease"
    STOPPED = "the worker stops"
    DONE = "the user's processor asks for nothing more"
    RESTART = "the user's processor asks for a new one, from the stored checkpoint"
    DRAINED = "the work has stopped, and its last checkpoint is stored"
    GIVEN = "the lease was handed over, or another worker was faster"
    LEASE_LOST = "the lease has expired here, or another worker has taken it"


class Effect(enum.Enum):
    """What the shell has to do."""

    OPEN = "read the checkpoint, then read from there"
    END = "store SHARD_END"
    DRAIN = "finish or abandon the batch, store the checkpoint, stop"
    ABANDON = "stop at once: nothing may be written"
    HAND_OVER = "give the lease away: to its thief, to an heir, or to any worker"
    SYNC = "create the leases of the children now"


_Table = dict[tuple[State, Event], tuple[State, Effect | None]]

_WAITING: _Table = {
    (State.WAITING, Event.PARENTS_DONE): (State.OPENING, Effect.OPEN),
    (State.WAITING, Event.STOLEN): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.WAITING, Event.STOPPED): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.WAITING, Event.LEASE_LOST): (State.LOST, None),
}

_OPENING: _Table = {
    (State.OPENING, Event.OPENED): (State.READING, None),
    (State.OPENING, Event.OPENED_AT_END): (State.FINISHED, Effect.SYNC),
    (State.OPENING, Event.FAILED): (State.FAILED, None),
    (State.OPENING, Event.STOLEN): (State.DRAINING, Effect.DRAIN),
    (State.OPENING, Event.STOPPED): (State.DRAINING, Effect.DRAIN),
    (State.OPENING, Event.LEASE_LOST): (State.LOST, Effect.ABANDON),
}

_READING: _Table = {
    (State.READING, Event.END_REACHED): (State.ENDING, Effect.END),
    (State.READING, Event.FAILED): (State.FAILED, None),
    (State.READING, Event.DONE): (State.RESTING, None),
    (State.READING, Event.RESTART): (State.OPENING, Effect.OPEN),
    (State.READING, Event.STOLEN): (State.DRAINING, Effect.DRAIN),
    (State.READING, Event.STOPPED): (State.DRAINING, Effect.DRAIN),
    (State.READING, Event.LEASE_LOST): (State.LOST, Effect.ABANDON),
}

_ENDING: _Table = {
    (State.ENDING, Event.ENDED): (State.FINISHED, Effect.SYNC),
    (State.ENDING, Event.FAILED): (State.FAILED, None),
    (State.ENDING, Event.STOLEN): (State.ENDING, None),
    (State.ENDING, Event.STOPPED): (State.ENDING, None),
    (State.ENDING, Event.LEASE_LOST): (State.LOST, Effect.ABANDON),
}

# The order to drain crosses what the work was about to tell. An end that was reached is stored all the same.
_DRAINING: _Table = {
    (State.DRAINING, Event.OPENED): (State.DRAINING, None),
    (State.DRAINING, Event.OPENED_AT_END): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.DRAINING, Event.END_REACHED): (State.ENDING, Effect.END),
    (State.DRAINING, Event.FAILED): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.DRAINING, Event.DONE): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.DRAINING, Event.RESTART): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.DRAINING, Event.DRAINED): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.DRAINING, Event.STOLEN): (State.DRAINING, None),
    (State.DRAINING, Event.STOPPED): (State.DRAINING, None),
    (State.DRAINING, Event.LEASE_LOST): (State.LOST, Effect.ABANDON),
}

_HANDING_OVER: _Table = {
    (State.HANDING_OVER, Event.GIVEN): (State.HANDED_OVER, None),
    # The call failed, and is made again in the next round.
    (State.HANDING_OVER, Event.FAILED): (State.HANDING_OVER, None),
    # The end of a pause, or of a look at the parents, that began before and crosses the order to hand over.
    (State.HANDING_OVER, Event.PARENTS_DONE): (State.HANDING_OVER, None),
    (State.HANDING_OVER, Event.RETRY): (State.HANDING_OVER, None),
    (State.HANDING_OVER, Event.STOLEN): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.HANDING_OVER, Event.STOPPED): (State.HANDING_OVER, Effect.HAND_OVER),
    (State.HANDING_OVER, Event.LEASE_LOST): (State.LOST, None),
}


def _resting(state: State) -> _Table:
    return {
        (state, Event.STOLEN): (State.HANDING_OVER, Effect.HAND_OVER),
        (state, Event.STOPPED): (State.HANDING_OVER, Effect.HAND_OVER),
        (state, Event.LEASE_LOST): (State.LOST, None),
    }


_FAILED: _Table = {(State.FAILED, Event.RETRY): (State.OPENING, Effect.OPEN)}


def _over(state: State) -> _Table:
    # The lease's events come in rounds, and the end of abandoned work comes late.
    late = (
        Event.PARENTS_DONE,
        Event.OPENED,
        Event.OPENED_AT_END,
        Event.END_REACHED,
        Event.ENDED,
        Event.FAILED,
        Event.DONE,
        Event.RESTART,
        Event.DRAINED,
        Event.GIVEN,
        Event.RETRY,
        Event.STOLEN,
        Event.STOPPED,
        Event.LEASE_LOST,
    )
    return {(state, event): (state, None) for event in late}


#: (state, event) -> (next state, effect). A missing pair cannot happen.
TRANSITIONS: Final[Mapping[tuple[State, Event], tuple[State, Effect | None]]] = MappingProxyType(
    _WAITING
    | _OPENING
    | _READING
    | _ENDING
    | _DRAINING
    | _HANDING_OVER
    | _FAILED
    | _resting(State.FAILED)
    | _resting(State.FINISHED)
    | _resting(State.RESTING)
    | _over(State.HANDED_OVER)
    | _over(State.LOST)
)


def step(state: State, event: Event) -> tuple[State, Effect | None]:
    """The state after an event, and the effect that the shell carries out.

    Raises:
        InvalidTransition: the event cannot happen in this state.
    """
    found = TRANSITIONS.get((state, event))
    if found is None:
        raise InvalidTransition(state.name, event.name)
    return found
