"""The exact commands for messages and for `kubectl ott why`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ots_tunnel_operator.reset.facts import Found
from ots_tunnel_operator.reset.request import Form
from ots_tunnel_operator.reset.way_out import Way

WAY = Way(
    namespace="shop",
    name="orders-copy",
    kind="BaseAndStream",
    table="orders",
    tunnel="copy",
    is_used=True,
    is_ours=True,
)
PAUSE = "kubectl ott pause orders-copy -n shop --wait"
RESET = "kubectl ott reset orders-copy -n shop --new-base"
RESUME = "kubectl ott resume orders-copy -n shop"
DELETE = "ots-tunnel tunnel delete orders copy --from-object shop/orders-copy"


@pytest.mark.parametrize(
    ("way", "found", "steps"),
    [
        (WAY, Found.GONE, (PAUSE, f"{RESET} --wait", RESUME)),
        (WAY, Found.RECORDED, (PAUSE, f"{RESET} --delete-tunnel --wait", RESUME)),
        (replace(WAY, is_ours=False), Found.RECORDED, (PAUSE, f"{DELETE}", f"{RESET} --wait", RESUME)),
        (WAY, Found.ANOTHER, (PAUSE, f"{DELETE}", f"{RESET} --wait", RESUME)),
        (replace(WAY, is_used=False), Found.RECORDED, (DELETE,)),
    ],
)
def test_the_steps_are_those_that_the_words_name(way: Way, found: Found, steps: tuple[str, ...]) -> None:
    words = way.words(found)

    assert way.steps(found) == steps
    for step in steps:
        if step != RESUME:
            assert step.removesuffix(" --wait").removesuffix("") in words
    assert len(words) < 512


def test_an_object_that_follows_changes_begins_with_the_oldest_one() -> None:
    assert replace(WAY, kind="Stream").reset() == "kubectl ott reset orders-copy -n shop --rewind Earliest"


def test_a_tunnel_that_has_taken_the_name_can_be_adopted() -> None:
    assert WAY.reset(Form.NEW_TUNNEL, "--adopt-tunnel") in WAY.words(Found.ANOTHER)
