"""Tests that do not measure coverage, because it would be most of their time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from coverage import Coverage


@contextmanager
def unmeasured() -> Iterator[None]:
    """Measure nothing in the block, nor in the processes that it starts; without effect where nothing is measured."""
    measuring = Coverage.current()
    hidden = {name: os.environ.pop(name) for name in tuple(os.environ) if name.startswith("COVERAGE_")}
    if measuring is not None:
        measuring.stop()
    try:
        yield
    finally:
        if measuring is not None:
            measuring.start()
        os.environ.update(hidden)
