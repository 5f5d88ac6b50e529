"""The operator as a process of its own, as a cluster runs it; killed and started again at will."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType

from tests.support.processes import inherited_environment, module

#: Time an operator has to end by itself.
_STOP_SECONDS = 20.0


class OperatorProcess:
    """`ots-tunnel-operator run` for one namespace; output of all its lives goes to one file.

    Args:
        kubeconfig: how it reaches the API server.
        namespace: the one it watches.
        log: where its output goes.
        flags: more flags.
    """

    def __init__(self, kubeconfig: Path, namespace: str, log: Path, *flags: str) -> None:
        self._command = module("ots_tunnel_operator", "run", "--namespace", namespace)
        self._command += ["--http-host", "127.0.0.1", "--http-port", "0", "--worker-image", "worker:test"]
        self._command += ["--spark-image", "spark:test", *flags]
        self._environment = inherited_environment(KUBECONFIG=str(kubeconfig))
        # a pod's account, where the tests themselves run in one
        self._environment.pop("KUBERNETES_SERVICE_HOST", None)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it takes some two seconds until it looks at the first object."""
        assert self._process is None or self._process.poll() is not None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_STOP_SECONDS)

    def stop(self) -> int:
        """End it by SIGTERM; the exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(_STOP_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def last_words(self, size: int = 4000) -> str:
        """The end of its output, for messages of failed tests."""
        return self._log.read_text(errors="replace")[-size:] if self._log.exists() else ""

    def __enter__(self) -> OperatorProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            self.kill()
