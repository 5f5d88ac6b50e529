"""What stands in the place of something that was not found, not read, or that could not be read.

Absent is not unknown: `Missing` means that a thing does not exist, `Failure` that it could not be read, `Unread` that
this pass did not ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from ots_tunnel_operator.reasons import Problem


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that could not be read; the problem names the cause and what to do."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that certainly does not exist."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that this pass did not read: a prerequisite failed, or it does not matter now."""


#: Of a pass that has not come to it.
UNREAD = Unread()
