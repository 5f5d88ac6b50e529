"""The end of a forked process that leaves the user's code."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import NoReturn

from ots_tunnel.console.exit_codes import OTHER_ERROR
from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)

#: Forks between this process and the one that imported the module. Not the process id tells parent and child apart:
#: both are 1 where the child is the first process of a namespace of its own.
_forks = 0


def forks() -> int:
    """Equal in one process, and another number in its children."""
    return _forks


@contextlib.contextmanager
def leaving_ends_a_child(*, awaits: bool = False) -> Iterator[None]:
    """Around the user's code: end a process that is forked in the meantime and comes to the end of the block.

    It ends by `os._exit`, with the code of its `sys.exit`, else with 5.

    Args:
        awaits: the block waits, in a coroutine. That may be destroyed in a child, which goes on with its own work.
    """
    parent = _forks
    try:
        yield
    except BaseException as error:  # whatever a child raises ends it
        if _forks == parent or (awaits and isinstance(error, GeneratorExit)):
            raise
        _end(error)
    if _forks != parent:
        _end(None)


def _end(error: BaseException | None) -> NoReturn:
    code = OTHER_ERROR
    try:
        if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
            code = error.code or 0
        else:
            extra = {"action": LogAction.CHILD_ENDED}
            logger.error("a forked process goes on as the worker", exc_info=error, extra=extra)
    finally:  # a handler of the log may raise, and what is raised here would be taken for the user's code's error
        os._exit(code & 0xFF)


def _count() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count)
