"""Every state and event of a worker as a client, against docs/protocol.md 5.2."""

from __future__ import annotations

import itertools

import pytest

from ots_tunnel.errors import InvalidTransition
from ots_tunnel.protocol.lifecycle import ClientEvent, ClientState, after

READY, STARTED, ENDED = ClientState.READY, ClientState.STARTED, ClientState.ENDED
#: State -> what each event, in their order, leads to; None cannot happen.
MATRIX = {
    READY: (STARTED, None, ENDED, ENDED),
    STARTED: (None, READY, ENDED, ENDED),
    ENDED: (None, None, None, None),
}


@pytest.mark.parametrize(("state", "event"), list(itertools.product(ClientState, ClientEvent)))
def test_the_matrix(state: ClientState, event: ClientEvent) -> None:
    expected = dict(zip(ClientEvent, MATRIX[state], strict=True))[event]
    if expected is None:
        with pytest.raises(InvalidTransition, match=f"no transition from {state.value} on {event.value}"):
            after(state, event)
    else:
        assert after(state, event) is expected
