"""What is measured of the tests' coverage, and when it is written."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from coverage import Coverage
from coverage.exceptions import CoverageWarning


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


def save_measures() -> None:
    """Write what this process has measured, and measure no more: it may be killed before its end.

    xdist kills a worker that is not gone seconds after its last test, and a file that is being written then is lost.
    """
    measuring = Coverage.current()
    if measuring is None:
        return
    measuring.stop()
    with warnings.catch_warnings():
        # a few tests need not import every package
        warnings.simplefilter("ignore", CoverageWarning)
        measuring.save()
