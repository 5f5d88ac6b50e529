"""Runs a worker as the whole of a process, which ends with the worker's exit code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn

from ots_tunnel.commands.worker_process.ending import Ending
from ots_tunnel.commands.worker_process.leaving import leave
from ots_tunnel.commands.worker_process.termination_message import write_termination_message
from ots_tunnel.console.exit_codes import exit_code
from ots_tunnel.console.explanations import Place, explanation
from ots_tunnel.errors import TunnelError
from ots_tunnel.log_actions import LogAction

logger = logging.getLogger(__name__)


def run_and_leave(
    begin: Callable[[], tuple[Place, Coroutine[Any, Any, Ending]]], log_level: str, termination_log: Path
) -> NoReturn:
    """Run a worker and end the process with its exit code; an error becomes a log line and the termination message.

    Args:
        begin: reads the document; returns the place for messages, and the run.
    """
    from ots_tunnel.logs import set_up_logs

    set_up_logs(log_level)
    place: Place | None = None
    try:
        place, running = begin()
        end = asyncio.run(running)
    except TunnelError as error:
        text = f"{type(error).__name__}: {error if place is None else explanation(error, place)}"
        write_termination_message(text, termination_log)
        logger.error("worker ends", extra={"action": LogAction.TERMINAL_ERROR, "error": text})
        leave(exit_code(error))
    except Exception as error:
        # the pod's termination message has to say why it ended, also for a bug
        write_termination_message(f"{type(error).__name__}: {error}", termination_log)
        logger.exception("worker ends on an unexpected error", extra={"action": LogAction.TERMINAL_ERROR})
        leave(exit_code(error))
    if end.reason:
        write_termination_message(end.reason, termination_log)
    leave(end.code)
