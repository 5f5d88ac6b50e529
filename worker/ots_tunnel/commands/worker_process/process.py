"""Runs a worker as the whole of a process, which ends with the worker's exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import selectors
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NoReturn

from ots_tunnel.commands.worker_process.ending import Ending
from ots_tunnel.commands.worker_process.last_resort import LastResort
from ots_tunnel.commands.worker_process.leaving import leave
from ots_tunnel.commands.worker_process.termination_message import write_termination_message
from ots_tunnel.console.exit_codes import OTHER_ERROR, exit_code
from ots_tunnel.console.explanations import Place, explanation
from ots_tunnel.errors import TunnelError
from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)


def run_and_leave(
    begin: Callable[[LastResort], tuple[Place, Coroutine[Any, Any, Ending]]], log_level: str, termination_log: Path
) -> NoReturn:
    """Run a worker and end the process with its exit code; an error becomes a log line and the termination message.

    Args:
        begin: reads the document; returns the place for messages, and the run. Its argument ends the process when the
            end takes too long.
    """
    from ots_tunnel.logs import set_up_logs

    set_up_logs(log_level)
    last_resort = LastResort()
    place: Place | None = None
    try:
        with _leaving_a_child():
            place, running = begin(last_resort)
            # inside as well: a child must not close the loop
            with asyncio.Runner(loop_factory=_loop) as runner, _leaving_a_child():
                code = runner.run(_exit_code_of(running, place, termination_log, last_resort))
    except (Exception, SystemExit) as error:
        # the pod's termination message has to say why it ended, also for a bug, and for a user's task that exits
        code = _report(error, place, termination_log)
    last_resort.leave_with(code)
    leave(code)


def _loop() -> asyncio.AbstractEventLoop:
    """The worker's loop, which does not go on in a process that the user's code has forked.

    Such a child that does not end by `os._exit` would be a second worker on the same connections. Both processes also
    wait for one set of descriptors: whatever the child closes, its parent would hear nothing of any more.
    """
    selector = selectors.DefaultSelector()
    os.register_at_fork(after_in_child=selector.close)
    return asyncio.SelectorEventLoop(selector)


@contextlib.contextmanager
def _leaving_a_child() -> Iterator[None]:
    """End a process that the user's code has forked and that leaves the run: the run's report is its parent's."""
    parent = os.getpid()
    try:
        yield
    except BaseException as error:  # whatever a child raises ends it
        if os.getpid() == parent:
            raise
        if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
            os._exit(error.code or 0)
        logger.error("a forked process goes on", exc_info=error, extra={"action": LogAction.CHILD_ENDED})
        os._exit(OTHER_ERROR)


async def _exit_code_of(
    running: Coroutine[Any, Any, Ending], place: Place, termination_log: Path, last_resort: LastResort
) -> int:
    """The exit code of a run that has ended and is reported: behind it asyncio waits for threads without a limit."""
    try:
        end = await running
        code = end.code
        if end.reason:
            write_termination_message(end.reason, termination_log)
    except Exception as error:
        # the pod's termination message has to say why it ended, also for a bug
        code = _report(error, place, termination_log)
    except BaseException:
        last_resort.begin()  # a task of the user's code has ended the loop, and a thread of it may hang
        raise
    last_resort.leave_with(code)
    return code


def _report(error: Exception | SystemExit, place: Place | None, termination_log: Path) -> int:
    """Log an error that ends the process, keep it as the termination message, and return its exit code."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, TunnelError):
        if place is not None:
            text = f"{type(error).__name__}: {explanation(error, place)}"
        write_termination_message(text, termination_log)
        logger.error("worker ends", extra={"action": LogAction.TERMINAL_ERROR, "error": text})
    else:
        write_termination_message(text, termination_log)
        logger.error("worker ends on an unexpected error", exc_info=error, extra={"action": LogAction.TERMINAL_ERROR})
    return exit_code(error)
