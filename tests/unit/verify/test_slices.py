"""Slices of a table, and the choice of a sample."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.verify.slices import choose_slices


@given(st.integers(1, 2000), st.floats(0.01, 100), st.integers(0, 10**6))
def test_a_sample_has_its_share_and_is_always_the_same(count: int, percent: float, seed: int) -> None:
    chosen = choose_slices(count, percent, seed)

    assert chosen == choose_slices(count, percent, seed)
    assert list(chosen) == sorted(set(chosen))
    assert set(chosen) <= set(range(count))
    assert count * percent / 100 <= len(chosen) < count * percent / 100 + 1
    assert set(chosen) <= set(choose_slices(count, min(100, percent * 2), seed))


def test_samples_never_change_between_releases() -> None:
    assert choose_slices(20, 25, 7) == (3, 4, 7, 8, 12)
    assert choose_slices(20, 25, 8) != choose_slices(20, 25, 7)
    assert choose_slices(3, 100, 1) == (0, 1, 2)


def test_every_slice_is_chosen_by_some_seed() -> None:
    assert {number for seed in range(200) for number in choose_slices(10, 10, seed)} == set(range(10))
