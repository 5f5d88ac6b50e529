"""The filters of stories: what the oracles take them to mean is what the worker does with them."""

from __future__ import annotations

import pytest

from ots_tunnel.config import DeliveryConfig
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.middleware.transform import Omitted, Transform
from tests.simulation.files.filters import FILTERS, draw_rollouts, passes
from tests.support.row_changes import CYCLE, change_of

KEYS = ("k00", "k01", "k02", "k03", "k10")
CHANGES = [(key, change_of(key, number, 0)) for key in KEYS for number in range(1, CYCLE + 1)]


@pytest.mark.parametrize("section", [*FILTERS, {"keyPrefix": {"pk": "k1"}, "actions": ["PUT"]}], ids=str)
def test_a_filter_means_the_same_to_the_oracles_and_to_a_worker(section: dict[str, object] | None) -> None:
    transform = Transform.of(DeliveryConfig.model_validate({"filter": section})) or Transform()

    for key, change in CHANGES:
        record = Record(change.action, change.body)
        assert passes(section, key, change.action.name) == bool(transform.apply([record], Omitted()))


def test_every_filter_but_none_leaves_something_out_and_something_in() -> None:
    for section in FILTERS[1:]:
        assert {passes(section, key, change.action.name) for key, change in CHANGES} == {True, False}


def test_about_half_of_the_seeds_have_rollouts_within_the_time_of_faults() -> None:
    drawn = [draw_rollouts(seed, 150.0, 60.0) for seed in range(1, 101)]

    assert 35 < sum(bool(rollouts) for rollouts in drawn) < 65
    assert all(0 <= fault.at <= 150 for rollouts in drawn for fault in rollouts)
