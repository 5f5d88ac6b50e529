"""Fixtures for the vendor's own clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.programs.go_program import GoUnavailable, build_go_worker
from tests.support.programs.java_program import JavaUnavailable, build_java_worker, build_stream_client
from tests.support.programs.node_program import NodeUnavailable, build_node_walk


@pytest.fixture(scope="session")
def go_worker() -> Path:
    """The vendor's Go worker."""
    try:
        return build_go_worker()
    except GoUnavailable as reason:
        pytest.skip(f"the vendor's Go worker cannot be built: {reason}")


@pytest.fixture(scope="session")
def java_worker() -> Path:
    """The vendor's Java worker."""
    try:
        return build_java_worker()
    except JavaUnavailable as reason:
        pytest.skip(f"the vendor's Java worker cannot be built: {reason}")


@pytest.fixture(scope="session")
def stream_client() -> Path:
    """A worker of the vendor's Stream Client library."""
    try:
        return build_stream_client()
    except JavaUnavailable as reason:
        pytest.skip(f"the vendor's Stream Client library cannot be built: {reason}")


@pytest.fixture(scope="session")
def node_walk() -> Path:
    """The walk through the vendor's Node SDK."""
    try:
        return build_node_walk()
    except NodeUnavailable as reason:
        pytest.skip(f"the vendor's Node SDK cannot be installed: {reason}")


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    """A table and a tunnel of an emulator that answers over HTTP."""
    async with Emulator(settings=Settings(page_rows=50, init_delay=0.01)) as emulator:
        yield EmulatorScene(emulator)
