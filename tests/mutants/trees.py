"""Copies of the tree, in which mutants are planted: several at a time, each in its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeVar

from tests.mutants.planted import ROOT

Result = TypeVar("Result")

#: Parts of the tree that are neither needed nor mutated.
LEFT_OUT: Final = shutil.ignore_patterns(
    *(".git", ".venv", "build", "dist", ".*_cache", "__pycache__", ".hypothesis"),
)


class Trees:
    """Copies of the tree as it is now.

    Args:
        folder: an empty one for them.
        count: how many.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            tree = folder / f"tree-{number}"
            shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
            self._free.put(tree)

    def use(self, work: Callable[[Path], Result]) -> Result:
        """Do some work in a copy that nobody else uses; waits for one."""
        tree = self._free.get()
        try:
            return work(tree)
        finally:
            self._free.put(tree)
