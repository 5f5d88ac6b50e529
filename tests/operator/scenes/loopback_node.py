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
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from ots_tunnel_operator import names
from tests.operator.scenes.operator_scene import OperatorScene
from tests.operator.scenes.pod_volumes import PodVolumes, moved
from tests.support.programs.processes import inherited_environment, module

_STOP_SECONDS = 20.0


class AddressTaken(Exception):
    """Another process listens on the worker's port on every address of this machine."""


class LoopbackNode:
    """Context manager that runs the only pod of an object's Deployment and ends its worker."""

    def __init__(self, scene: OperatorScene, folder: Path) -> None:
        self._scene = scene
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "worker.log"

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
        """Start the worker of the unscheduled pod, and mark the pod as ready once the worker is.

        Raises:
            AddressTaken: no address of this machine has the worker's port free.
        """
        (pod,) = self._scene.kube.list("Pod", self._scene.namespace)
        address = _free_address()
        self._start(address)
        status = {"status": _running(address)}
        self._scene.kube.patch("Pod", self._scene.namespace, pod["metadata"]["name"], status, "status")

    def restart(self) -> None:
        """Kill the worker by SIGKILL and start its container again, as a kubelet does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_STOP_SECONDS)
        (pod,) = self._scene.kube.list("Pod", self._scene.namespace)
        address = pod["status"]["podIP"]
        self._start(address)
        status = {"status": _running(address, restarts=1)}
        self._scene.kube.patch("Pod", self._scene.namespace, pod["metadata"]["name"], status, "status")

    def _start(self, address: str) -> None:
        command = module("ots_tunnel", "run", "--config", str(self._document(address)))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=inherited_environment(self._folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._scene.until(lambda: self._is_ready(address), "the worker is ready")

    def _document(self, address: str) -> Path:
        (pod,) = self._scene.kube.list("Pod", self._scene.namespace)
        folders = PodVolumes(self._scene, self._folder).mount(pod["spec"])
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
    raise AddressTaken(f"port {names.WORKER_PORT} is not free on any loopback address")


def _running(address: str, restarts: int = 0) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = {"name": names.WORKER_CONTAINER, "image": "worker:test", "imageID": "", "restartCount": restarts}
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [container | {"ready": True, "started": True, "state": {"running": {"startedAt": now}}}],
    }
