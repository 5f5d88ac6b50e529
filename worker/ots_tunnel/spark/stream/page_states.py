"""State machine of one page between the tunnel and Spark. Pure.

    WAITING --PLANNED--> IN_BATCH --COMMITTED--> CONFIRMED     the usual way
       |                    |
    ABANDONED           ABANDONED                              the channel was closed: its pages are read again
       v                    v
    DROPPED              ORPHANED --COMMITTED--> DROPPED

A page that Spark has logged in an offset stays until the batch is committed, even if its channel was taken away
meanwhile: Spark may plan the batch again. Only the page of an open channel has a confirmation to end; that of an
orphan ended with the channel, and what is read again is told apart by its marks.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ots_tunnel.errors import InvalidTransition


class PageState(enum.Enum):
    """Where a page is."""

    WAITING = "waiting"
    IN_BATCH = "in a batch"
    ORPHANED = "in a batch, and read again"
    CONFIRMED = "committed and confirmed"
    DROPPED = "dropped"


class PageEvent(enum.Enum):
    """What happens to a page."""

    PLANNED = "a batch has it"
    COMMITTED = "Spark has committed its batch"
    ABANDONED = "its channel was closed before"


#: (state, event) -> next state. A missing pair cannot happen.
TRANSITIONS: Final[Mapping[tuple[PageState, PageEvent], PageState]] = MappingProxyType(
    {
        (PageState.WAITING, PageEvent.PLANNED): PageState.IN_BATCH,
        (PageState.WAITING, PageEvent.ABANDONED): PageState.DROPPED,
        (PageState.IN_BATCH, PageEvent.COMMITTED): PageState.CONFIRMED,
        (PageState.IN_BATCH, PageEvent.ABANDONED): PageState.ORPHANED,
        (PageState.ORPHANED, PageEvent.COMMITTED): PageState.DROPPED,
        (PageState.ORPHANED, PageEvent.ABANDONED): PageState.ORPHANED,
    }
)


def step(state: PageState, event: PageEvent) -> PageState:
    """The state after an event.

    Raises:
        InvalidTransition: the event cannot happen in this state.
    """
    found = TRANSITIONS.get((state, event))
    if found is None:
        raise InvalidTransition(state.value, event.value)
    return found
