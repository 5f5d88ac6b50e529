"""State machine of a worker as a client of its tunnel: ready, started, ended.

A worker that loses its client becomes ready and connects a new one. The state ended is final.
Source: docs/protocol.md 5.2.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ots_tunnel.errors import InvalidTransition


class ClientState(enum.Enum):
    """Whether the service knows a client of this worker."""

    READY = "ready"
    STARTED = "started"
    ENDED = "ended"


class ClientEvent(enum.Enum):
    """Events in the life of a client."""

    CONNECTED = "connected"
    LOST = "unknown to the service, or without a heartbeat"
    STOPPED = "stopped or complete"
    REFUSED = "refused permanently"


#: (state, event) -> next state. A missing pair cannot happen.
CLIENT_TRANSITIONS: Final[Mapping[tuple[ClientState, ClientEvent], ClientState]] = MappingProxyType(
    {
        (ClientState.READY, ClientEvent.CONNECTED): ClientState.STARTED,
        (ClientState.READY, ClientEvent.STOPPED): ClientState.ENDED,
        (ClientState.READY, ClientEvent.REFUSED): ClientState.ENDED,
        (ClientState.STARTED, ClientEvent.LOST): ClientState.READY,
        (ClientState.STARTED, ClientEvent.STOPPED): ClientState.ENDED,
        (ClientState.STARTED, ClientEvent.REFUSED): ClientState.ENDED,
    }
)


def after(state: ClientState, event: ClientEvent) -> ClientState:
    """The state after an event.

    Raises:
        InvalidTransition: the event cannot happen in this state.
    """
    try:
        return CLIENT_TRANSITIONS[state, event]
    except KeyError:
        raise InvalidTransition(state.value, event.value) from None
