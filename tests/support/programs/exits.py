"""A process of the tests that product code ends at once says who has ended it: pytest has captured everything else."""

from __future__ import annotations

import faulthandler
import os
from typing import NoReturn


def announce_exits(stderr: int) -> None:
    """Print the stacks of all threads before `os._exit` ends this process; processes that it forks end as they do.

    Args:
        stderr: file descriptor of the standard error that is not captured.
    """
    process, leave = os.getpid(), os._exit

    def announce(status: int) -> NoReturn:
        if os.getpid() == process:
            os.write(stderr, f"os._exit({status}) in a process of the tests:\n".encode())
            faulthandler.dump_traceback(stderr)
        leave(status)

    os._exit = announce
