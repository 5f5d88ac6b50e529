"""Fixtures for every test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from ots_tunnel.protocol.plainbuffer.compiled import VARIABLE, native
from tests.support.lacking import lack


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
