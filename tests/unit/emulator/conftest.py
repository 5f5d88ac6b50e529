from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.emulator.emulator_driver import Driver


@pytest.fixture
def make_driver(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Creates emulators with data directories; after the test, compares each with its state after a crash."""
    drivers: list[Driver] = []

    def make(**settings: Any) -> Driver:
        drivers.append(Driver(tmp_path / f"data{len(drivers)}", **settings))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.check_crash()


@pytest.fixture
async def driver(make_driver: Callable[..., Driver]) -> Driver:
    """An emulator with table ``t``, which stores three versions."""
    driver = make_driver()
    await driver.create_table(max_versions=3)
    return driver
