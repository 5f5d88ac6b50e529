"""The path to the destination goes dark, slow or half-open by chance; the tables have to be equal and stay equal."""

from __future__ import annotations

import pytest

from tests.support.network.namespace import need_lost_packets, run_apart

pytestmark = pytest.mark.usefixtures("lost_packets")


@pytest.fixture(scope="module")
def lost_packets() -> None:
    """Packets can be dropped."""
    need_lost_packets()


@pytest.mark.long
@pytest.mark.lasts(60)
@pytest.mark.parametrize("seed", range(1, 9))
def test_no_old_value_overwrites_a_new_one(seed: int) -> None:
    run_apart("tests.support.network.lossy_copy", "chaos", str(seed), seconds=240)
