from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.emulator.driver import Driver


@pytest.fixture
def make_driver() -> Callable[..., Driver]:
    def make(**settings: Any) -> Driver:
        return Driver(**settings)

    return make


@pytest.fixture
async def driver() -> Driver:
    """An emulator with table ``t`` that keeps three versions."""
    driver = Driver()
    await driver.create_table(max_versions=3)
    return driver
