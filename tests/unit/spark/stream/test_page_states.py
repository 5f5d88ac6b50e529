from __future__ import annotations

import itertools

import pytest

from ots_tunnel.errors import InvalidTransition
from ots_tunnel.spark.stream.page_states import TRANSITIONS, PageEvent, PageState, step


@pytest.mark.parametrize(("state", "event"), list(itertools.product(PageState, PageEvent)))
def test_every_pair_is_a_transition_or_refused(state: PageState, event: PageEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert step(state, event) is TRANSITIONS[state, event]
        return
    with pytest.raises(InvalidTransition, match="no transition from"):
        step(state, event)


def test_only_a_committed_batch_confirms_a_page() -> None:
    confirming = [pair for pair, state in TRANSITIONS.items() if state is PageState.CONFIRMED]

    assert confirming == [(PageState.IN_BATCH, PageEvent.COMMITTED)]


def test_every_page_ends() -> None:
    for state in (PageState.WAITING, PageState.IN_BATCH, PageState.ORPHANED):
        ends = {PageState.CONFIRMED, PageState.DROPPED}
        reached, new = {state}, {state}
        while new:
            new = {after for (before, _), after in TRANSITIONS.items() if before in reached} - reached
            reached |= new
        assert reached & ends
