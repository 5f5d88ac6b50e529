"""Runs a worker as the whole of a process, which ends with the worker's exit code."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

from ots_tunnel.commands.worker_process.ending import Ending
from ots_tunnel.commands.worker_process.last_resort import LastResort
from ots_tunnel.commands.worker_process.leaving import leave
from ots_tunnel.commands.worker_process.termination_message import write_termination_message
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.console.explanations import Place, explanation
from ots_tunnel.errors import TunnelError
from ots_tunnel.forks.ending import leaving_ends_a_child
from ots_tunnel.forks.running import run
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
        with leaving_ends_a_child():
            place, running = begin(last_resort)
            code = run(_exit_code_of(running, place, termination_log, last_resort))
    except (Exception, SystemExit) as error:
        # the pod's termination message has to say why it ended, also for a bug, and for a user's task that exits
        code = _report(error, place, termination_log)
    last_resort.leave_with(code)
    leave(code)


async def _exit_code_of(
    running: Coroutine[Any, Any, Ending], place: Place, termination_log: Path, last_resort: LastResort
) -> int:
    """The exit code of a run that has ended and is reported: behind it asyncio waits for threads without a limit."""
    try:
        with leaving_ends_a_child(awaits=True):  # the run's report is its parent's
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
