"""`kubectl ott` as a person runs it: kubectl finds the installed program on the PATH."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.kube.api_server import cache
from tests.support.programs.processes import inherited_environment, unmeasured

#: Seconds that a command may take on a loaded machine.
PATIENCE = 60.0


@dataclass(frozen=True)
class Plugin:
    """The command with a kubeconfig and a namespace.

    Args:
        folder: where `kubectl-ott` is; by default that of the installed package.
        is_measured: whether coverage is measured: not of a program elsewhere, whose source is gone later.
    """

    kubeconfig: Path
    namespace: str
    folder: Path = Path(sys.executable).parent
    is_measured: bool = True

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the plugin, its output a pipe."""
        return subprocess.run(
            self._command(arguments),
            env=self._environment(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def must(self, *arguments: str, **variables: str) -> str:
        """Run a command, assert that it succeeds, and return its output."""
        done = self.run(*arguments, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def typed(self, line: str, folder: Path) -> None:
        """Run a line in a shell, as a person types it, in a folder; it has to succeed."""
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=folder,
            env=self._environment({}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"

    def on_terminal(self, *arguments: str, until: str, keys: str) -> tuple[int, str]:
        """Run a command on a terminal of 80 x 24, type keys once a text appears; the exit code and all output."""
        child, terminal = pty.fork()
        if not child:
            # what runs tests may ignore or block it, and its programs inherit that; those of a person do not
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            environment = self._environment({"TERM": "xterm", "COLUMNS": "80", "LINES": "24"})
            os.execvpe("kubectl", self._command(arguments), environment)
        try:
            shown = _read(terminal, until)
            os.write(terminal, keys.encode())
            shown += _read(terminal, None)
        finally:
            os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        command, *rest = arguments
        place = () if {"-A", "-n", "--help"} & {*arguments} else ("-n", self.namespace)
        return ["kubectl", "ott", command, *place, *rest]

    def _environment(self, variables: dict[str, str]) -> dict[str, str]:
        path = os.pathsep.join((str(cache() / "bin"), str(self.folder), os.environ["PATH"]))
        environment = inherited_environment(KUBECONFIG=str(self.kubeconfig), PATH=path, PYTHONIOENCODING="utf-8")
        environment.pop("COLUMNS", None)
        return (environment if self.is_measured else unmeasured(environment)) | variables


def _read(terminal: int, until: str | None) -> str:
    """What appears until a text does, or until the program ends."""
    shown, give_up = b"", time.monotonic() + PATIENCE
    while until is None or until.encode() not in shown:
        assert time.monotonic() < give_up, shown.decode(errors="replace")
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if not ready:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the program has ended and closed its side
            part = b""
        if not part:
            assert until is None, shown.decode(errors="replace")
            break
        shown += part
    return shown.decode(errors="replace")
