"""Walks through resets: an object that is Ready has what its status says, whatever people did and whoever died."""

from __future__ import annotations

import pytest

from tests.support.operator.reset_walk import Walk

STEPS = 120


@pytest.mark.parametrize("first", range(14, 30, 8))
def test_an_object_that_is_ready_lacks_nothing_but_what_its_status_says(first: int) -> None:
    walks = {seed: Walk(seed) for seed in range(first, first + 8)}
    wrong = {seed: found for seed, walk in walks.items() if (found := walk.go(STEPS))}

    assert wrong == {}, "\n".join(walks[next(iter(wrong))].story[-40:])
    assert sum(walk.done for walk in walks.values()) > 8
