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


@contextlib.contextmanager
def leaving_ends_a_child() -> Iterator[None]:
    """Around the user's code: end a process that is forked in the meantime and comes to the end of the block.

    It ends by `os._exit`, with the code of its `sys.exit`, else with 5.
    """
    parent = os.getpid()
    try:
        yield
    except GeneratorExit:
        raise  # a coroutine of the parent's is destroyed in a child, which goes on with its own
    except BaseException as error:  # whatever a child raises ends it
        if os.getpid() == parent:
            raise
        _end(error)
    if os.getpid() != parent:
        _end(None)


def _end(error: BaseException | None) -> NoReturn:
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        os._exit(error.code or 0)
    logger.error("a forked process goes on as the worker", exc_info=error, extra={"action": LogAction.CHILD_ENDED})
    os._exit(OTHER_ERROR)
