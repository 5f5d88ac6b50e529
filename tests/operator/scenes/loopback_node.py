"""A node on loopback: runs a pod of a Deployment as a process, on a separate address of 127.0.0.0/8.

The API-only cluster has no kubelet. This module does the part of a kubelet that the operator notices: the pod's
volumes as folders, a real worker behind the pod's address, and the pod's status.
"""

from __future__ import annotations

import errno
import random
import socket
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
import yaml

from ots_tunnel_operator import names
from tests.operator.scenes.operator_scene import OperatorScene
from tests.operator.scenes.pod_statuses import ended, ready, started
from tests.operator.scenes.pod_volumes import PodVolumes, moved
from tests.support.programs.processes import inherited_environment, module

_STOP_SECONDS = 20.0
#: Seconds within which a worker ends that cannot begin.
_ENDING = 120.0


class LoopbackNode:
    """Context manager that runs the only pod of an object's Deployment and ends its worker.

    It skips the test where another process has the worker's port on every address of this machine.
    """

    def __init__(self, scene: OperatorScene, folder: Path) -> None:
        self._scene = scene
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "worker.log"
        self._last_words = folder / "termination-log"

    def __enter__(self) -> LoopbackNode:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_SECONDS)

    def run(self) -> None:
        """Start the worker of the unscheduled pod, and mark the pod as ready once the worker is."""
        self.await_ready(self.begin())

    def begin(self) -> str:
        """Start the worker of the pod, and show its container as running, but not as ready; return its address."""
        address = _free_address()
        self._start(address)
        self._show(started(address, self._pod()))
        return address

    def await_ready(self, address: str) -> None:
        """Mark the pod as ready once the worker at its address is."""
        self._scene.until(lambda: self._is_ready(address), "the worker is ready")
        self._show(ready(self._pod()))

    def run_until_end(self) -> tuple[int, str]:
        """Start the worker of the pod, and show its end as a kubelet does; its exit code and termination message."""
        self.begin()
        return self.await_end()

    def await_end(self) -> tuple[int, str]:
        """Show the end of the worker as a kubelet does; its exit code and termination message."""
        assert self._process is not None
        code, words = self._process.wait(_ENDING), self._last_words.read_text()
        self._show(ended(code, words, self._pod()))
        return code, words

    def restart(self) -> None:
        """Kill the worker by SIGKILL and start its container again, as a kubelet does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_STOP_SECONDS)
        address = self._pod()["status"]["podIP"]
        self._start(address)
        self._show(started(address, self._pod()))
        self.await_ready(address)

    def output(self) -> str:
        """What its workers have logged so far."""
        return self._log.read_text(errors="replace")

    def _pod(self) -> dict[str, Any]:
        pod: dict[str, Any]
        (pod,) = self._scene.kube.list("Pod", self._scene.namespace)
        return pod

    def _show(self, status: dict[str, Any]) -> None:
        name = self._pod()["metadata"]["name"]
        self._scene.kube.patch("Pod", self._scene.namespace, name, {"status": status}, "status")

    def _start(self, address: str) -> None:
        self._last_words.write_text("")
        options = ("--config", str(self._document(address)), "--termination-log", str(self._last_words))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                module("ots_tunnel", *self._command(), *options),
                env=inherited_environment(self._folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _command(self) -> list[str]:
        """The words of the pod's command between the program and its options, such as `stream run`."""
        found = self._pod()["spec"]["containers"]
        (container,) = (item for item in found if item["name"] == names.WORKER_CONTAINER)
        program, *words = container["args"]
        assert program == "ots-tunnel"
        return list(words[: words.index("--config")])

    def _document(self, address: str) -> Path:
        folders = PodVolumes(self._scene, self._folder).mount(self._pod()["spec"])
        document: dict[str, Any] = yaml.safe_load((folders[names.CONFIG_DIRECTORY] / names.WORKER_FILE).read_text())
        document["http"]["host"] = address
        document["source"]["endpoint"] = self._scene.service.endpoint
        if "tablestore" in document["sink"]:
            document["sink"]["tablestore"]["endpoint"] = self._scene.service.endpoint
        path = self._folder / names.WORKER_FILE
        path.write_text(yaml.safe_dump(moved(document, folders)))
        return path

    def _is_ready(self, address: str) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-4000:]
        try:
            with urllib.request.urlopen(f"http://{address}:{names.WORKER_PORT}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _free_address() -> str:
    for _ in range(20):
        address = f"127.{random.randint(64, 127)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, names.WORKER_PORT))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                    raise
                continue
            return address
    pytest.skip(f"port {names.WORKER_PORT} is not free on any loopback address")
