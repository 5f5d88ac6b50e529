"""Runs a story in a forked process, which ends without any clean-up: dead processes of the region must not be tidied.

The garbage collector would run the `finally` blocks of killed workers; and no story finds anything of another one.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


class Crashed(RuntimeError):
    """The process has ended without a result."""


@dataclass(frozen=True, slots=True)
class Child:
    """A forked process and the end of its pipe."""

    pid: int
    pipe: int

    def result(self) -> Any:
        """Wait for its result.

        Raises:
            Crashed: it failed; its error is on the screen.
        """
        with open(self.pipe, "rb") as pipe:
            content = pipe.read()
        _, status = os.waitpid(self.pid, 0)
        if status or not content:
            raise Crashed(f"a story ended with status {os.waitstatus_to_exitcode(status)}")
        return pickle.loads(content)


def start(function: Callable[..., Any], *arguments: Any) -> Child:
    """Call a function in a forked process."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    status = 1
    try:
        os.close(reading)
        content = pickle.dumps(function(*arguments))
        with open(writing, "wb") as pipe:
            pipe.write(content)
        status = 0
    except BaseException:  # the process ends here, whatever it is
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def finished(children: Iterable[Child]) -> list[Child]:
    """Wait until one of the children, or more, has a result."""
    by_pipe = {child.pipe: child for child in children}
    ready, _, _ = select.select(list(by_pipe), [], [])
    return [by_pipe[pipe] for pipe in ready]
