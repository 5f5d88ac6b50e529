"""Interpreters that Spark has started, beside a driver or for one task after the other.

Spark has the garbage of an interpreter collected after each task, by a walk over every object. What a task of ours has
imported by then, pyarrow, pandas and the models of documents, is a hundred thousand objects that never go: the walk
takes longer than a task with some ten thousand rows decodes them.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def is_of_spark() -> bool:
    """Whether Spark has started this interpreter; another one belongs to the program that runs in it."""
    program = getattr(sys.modules["__main__"], "__spec__", None)
    return program is not None and str(program.name).startswith("pyspark.")


@cache  # to count what is frozen is a walk over all of it
def settle() -> None:
    """Let later collections leave out what the interpreter has by now; only the first call does something.

    What is no longer used is collected before. A later task imports little that the first one did not. Nothing happens
    in an interpreter of someone else.
    """
    if is_of_spark():
        gc.collect()
        gc.freeze()


def settling(found: Iterator[T]) -> Iterator[T]:
    """The same items, and `settle` behind them."""
    yield from found
    settle()
