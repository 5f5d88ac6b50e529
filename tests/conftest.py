"""Fixtures for every test."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Generator, Iterator
from contextlib import nullcontext

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

from ots_tunnel.protocol.plainbuffer.compiled import VARIABLE, native
from tests.support.lacking import lack
from tests.support.measuring import save_measures, unmeasured
from tests.support.order import arranged
from tests.support.programs.exits import announce_exits
from tests.support.suite.failures import name_failures

# Examples are slow on a busy machine, and the first one may import a library: no defect of the code.
settings.register_profile("without-deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("many", settings.get_profile("without-deadline"), max_examples=500)
settings.load_profile("without-deadline")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bring the tests into the order in which several processes get them; one process runs them as they are written."""
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None:
        items[:] = arranged(items, workerinput["workercount"])


def pytest_collection_finish() -> None:
    """Let collections of garbage leave out the collected tests: with all of them each would take half a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Leave a test with the mark `unmeasured` out of the coverage, and the log as it was before the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        with unmeasured() if item.get_closest_marker("unmeasured") else nullcontext():
            return (yield)
    finally:  # a command that runs inside a test sets the log up for its whole process
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Show who ends a process of the tests, which says nothing else, and which test has failed."""
    announce_exits(config.stash[fault_handler_stderr_fd_key])
    name_failures(config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what one of several processes has measured, whatever happens at its end."""
    if hasattr(session.config, "workerinput"):
        save_measures()


@pytest.fixture(scope="session", autouse=True)
def main_thread_loop() -> Iterator[None]:
    """Own the main thread's event loop.

    pytest-asyncio leaks the implicit one when a synchronous test runs first, and warnings are errors here
    (pytest-dev/pytest-asyncio#724).
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(scope="session")
def compiled_codec() -> None:
    """The codec is compiled, as it is wherever there is a compiler."""
    if os.environ.get(VARIABLE) == "python":
        pytest.skip("this run has chosen the codec in Python")
    if native is None:
        lack("compiler", "the package was built without a compiler")
