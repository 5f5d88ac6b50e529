"""Python programs as forks of a process that has imported them, for tests that start one hundreds of times.

A start of the operator imports for two seconds of a processor, which is most of what a test takes that kills it at
every write. `multiprocessing` keeps a process that has imported the module and does nothing but fork.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class ForkedProgram:
    """A module's `main` with its arguments in a process of its own; what a test uses of a `Popen`.

    Args:
        name: the module. The first one of a process of tests is imported once for all, others for each fork.
        arguments: behind the name of the program.
        environment: in the place of the caller's.
        output: file to which standard output and standard error are appended.
    """

    def __init__(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([name])
        self._process = context.Process(target=_run, args=(name, arguments, dict(environment), output), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """Wait for the end and return the exit code.

        Raises:
            TimeoutExpired: it runs on after `timeout` seconds.
        """
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def _run(name: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for standard in (1, 2):
        os.dup2(file, standard)
    os.close(file)
    sys.argv = [name, *arguments]
    importlib.import_module(name).main()
