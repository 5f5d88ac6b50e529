"""Packets to the destination are lost for longer than a write may take; old values must not overwrite new ones."""

from __future__ import annotations

import pytest

from tests.support.network.namespace import need_lost_packets, run_apart
from tests.support.network.paths import Path

pytestmark = [pytest.mark.usefixtures("lost_packets"), pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def lost_packets() -> None:
    """Packets can be dropped."""
    need_lost_packets()


@pytest.mark.parametrize("path", list(Path), ids=lambda path: path.name.lower())
@pytest.mark.lasts(13)
def test_a_write_that_was_given_up_does_not_arrive_when_the_path_is_back(path: Path) -> None:
    run_apart("tests.support.network.lossy_copy", "blackout", path.name, seconds=170)


@pytest.mark.lasts(19)
def test_a_write_of_a_killed_worker_does_not_arrive_after_those_of_its_successor() -> None:
    run_apart("tests.support.network.lossy_copy", "killed", Path.DARK.name, seconds=170)
