"""How the process that checks a document says what it has found."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """The first byte of what it writes; exit codes may be lost, where a program ignores SIGCHLD."""

    #: The checked parts follow, pickled.
    CHECKED = b"+"
    #: The text of a ConfigError follows.
    WRONG = b"-"
    #: The reason follows why nothing was checked.
    FAILED = b"!"
