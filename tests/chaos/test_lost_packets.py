"""The path to the destination goes dark, slow or half-open by chance; the tables have to be equal and stay equal."""

from __future__ import annotations

import pytest

from tests.support.network.namespace import lacking, run_apart

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking() or "packets can be dropped")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 9))
def test_no_old_value_overwrites_a_new_one(seed: int) -> None:
    run_apart("tests.support.network.lossy_copy", "chaos", str(seed), seconds=240)
