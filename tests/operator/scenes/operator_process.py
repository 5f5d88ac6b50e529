"""The operator as a separate process, which a test can kill and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.support.programs.forked import ForkedProgram
from tests.support.programs.processes import inherited_environment, module

_MODULE = "ots_tunnel_operator"

#: Seconds that an operator may take to end: the chart's terminationGracePeriodSeconds, after which a pod is killed.
_STOP_SECONDS = 30.0


#: The operator, whose main thread, and with it the event loop, stands still from a signal on; its other threads run on.
_BLOCKING = (
    "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: time.sleep(600)); "
    "from ots_tunnel_operator.__main__ import main; main()"
)


class OperatorProcess:
    """`ots-tunnel-operator run` for one namespace or all; the output of all its runs goes to one file.

    Args:
        kubeconfig: access to the API server.
        namespace: namespace to watch; None watches all.
        log: file for the output.
        flags: additional flags.
        can_block: whether `block` is used.
        is_forked: whether it is forked from a process that has imported it; a start then costs a fifth.
        modules: folder of further modules, which come first.
    """

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str | None,
        log: Path,
        *flags: str,
        can_block: bool = False,
        is_forked: bool = False,
        modules: Path | None = None,
    ) -> None:
        assert not (is_forked and (can_block or modules)), "a fork has what its parent has imported"
        scope = () if namespace is None else ("--namespace", namespace)
        self._program = [sys.executable, "-c", _BLOCKING] if can_block else module(_MODULE)
        self._arguments = ["run", *scope]
        self._arguments += ["--http-host", "127.0.0.1", "--http-port", "0", "--worker-image", "worker:test"]
        self._arguments += ["--spark-image", "spark:test", *flags]
        self._is_forked = is_forked
        folders = () if modules is None else (modules,)
        self._environment = inherited_environment(*folders, KUBECONFIG=str(kubeconfig))
        # otherwise the operator uses the pod's service account where the tests run in a pod
        self._environment.pop("KUBERNETES_SERVICE_HOST", None)
        self._log = log
        self._process: subprocess.Popen[bytes] | ForkedProgram | None = None

    def start(self) -> None:
        """Start the process; its first pass begins about two seconds later."""
        assert self._process is None or self._process.poll() is not None
        if self._is_forked:
            self._process = ForkedProgram(f"{_MODULE}.__main__", self._arguments, self._environment, self._log)
            return
        command = [*self._program, *self._arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End the process by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_STOP_SECONDS)

    def block(self) -> None:
        """Let the event loop stand still."""
        os.kill(self.pid, signal.SIGUSR1)

    def stop(self) -> int:
        """End the process by SIGTERM and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(_STOP_SECONDS)

    @property
    def pid(self) -> int:
        """Id of the process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def last_output(self, size: int = 4000) -> str:
        """Return the end of the output, for messages of failed tests."""
        return self._log.read_text(errors="replace")[-size:] if self._log.exists() else ""

    def __enter__(self) -> OperatorProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            self.kill()
