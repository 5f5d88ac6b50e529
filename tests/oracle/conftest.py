"""Fixtures for the vendor's own clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from tests.support.emulator.emulator_scene import EmulatorScene
from tests.support.lacking import lack
from tests.support.programs.go_program import GoUnavailable, build_go_worker
from tests.support.programs.java_program import (
    JavaUnavailable,
    build_java_sinks,
    build_java_worker,
    build_stream_client,
)
from tests.support.programs.node_program import NodeUnavailable, build_node_walk


def built(build: Callable[[], Path], installed: str, what: str) -> Path:
    """A program, which is built the first time."""
    try:
        return build()
    except (GoUnavailable, JavaUnavailable, NodeUnavailable) as reason:
        lack(installed, f"the vendor's {what} cannot be built: {reason}")


@pytest.fixture(scope="session")
def go_worker() -> Path:
    """The vendor's Go worker."""
    return built(build_go_worker, "go", "Go worker")


@pytest.fixture(scope="session")
def java_worker() -> Path:
    """The vendor's Java worker."""
    return built(build_java_worker, "javac", "Java worker")


@pytest.fixture(scope="session")
def java_sinks() -> Path:
    """The vendor's Java worker with the libraries of other places."""
    return built(build_java_sinks, "javac", "Java worker with other libraries")


@pytest.fixture(scope="session")
def stream_client() -> Path:
    """A worker of the vendor's Stream Client library."""
    return built(build_stream_client, "javac", "Stream Client library")


@pytest.fixture(scope="session")
def node_walk() -> Path:
    """The walk through the vendor's Node SDK."""
    return built(build_node_walk, "nodejs", "Node SDK")


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    """A table and a tunnel of an emulator that answers over HTTP."""
    async with Emulator(settings=Settings(page_rows=50, init_delay=0.01)) as emulator:
        yield EmulatorScene(emulator)
