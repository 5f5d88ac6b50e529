"""The seed with which a campaign begins."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Seeds that the campaigns of two starts are apart; none has so many stories.
APART = 1000
#: Where the files are no git repository.
WITHOUT_GIT = 29_922_156 * APART


def first_seed(text: str | None) -> int:
    """The first seed: a number, `tree` for one that every committed tree has for itself, or None for a new one.

    A tree that passes so passes again, and every change of the tree meets new seeds.

    Raises:
        ValueError: it is none of them.
    """
    if text is None:
        return int(time.time() / 60) * APART  # another one in every minute
    if text == "tree":
        return _of_tree()
    if text.isdecimal():
        return int(text)
    raise ValueError(f"--start: found {text!r}; it is a seed, 0 or more, or `tree`")


def _of_tree() -> int:
    command = ("git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return WITHOUT_GIT
    return int(found.stdout[:8], 16) * APART if found.returncode == 0 else WITHOUT_GIT
