"""SIGTERM ends the operator within seconds and frees the Lease, also while endpoints do not answer."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.operator.scenes.operator_process import OperatorProcess
from tests.support.kube.api_server import ApiServer
from tests.support.kube.kube_api import KubeApi
from tests.support.operator.objects import tunnel_object
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(400)]
#: Seconds within which an operator has started, beside other tests.
STARTING = 120.0

#: Number of objects; more than the thread pool for blocking calls has threads.
OBJECTS = 10


@contextmanager
def swallowing_endpoint() -> Iterator[str]:
    """Serve an endpoint that neither accepts nor refuses connections, because its queue is full."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def trickling_endpoint() -> Iterator[str]:
    """Serve an endpoint that goes on answering, a byte at a time: no time limit for the next byte ends such a call."""
    with Trickling() as endpoint:
        yield endpoint.url


class Trickling:
    """Answers a byte a second to every connection."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> Trickling:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                threading.Thread(target=self._answer, args=(self._server.accept()[0],), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(OSError):  # the client has left
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not self._over.wait(1.0):
                client.sendall(b"x")


@pytest.mark.parametrize("serving", [swallowing_endpoint, trickling_endpoint])
def test_calls_that_do_not_end_keep_the_operator_from_no_part_of_its_end(
    api_server: ApiServer, tmp_path: Path, serving: Callable[[], AbstractContextManager[str]]
) -> None:
    """It hands the Lease back and ends well, in the time that a pod has."""
    api = KubeApi(api_server.kubeconfig)
    namespace = serving.__name__.replace("_", "-")
    api.create_namespace(namespace)
    data = {key: base64.b64encode(b"x").decode() for key in ("accessKeyId", "accessKeySecret")}
    metadata = {"name": "ots-credentials", "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    flags = ("--lease-namespace", namespace)
    with (
        serving() as endpoint,
        OperatorProcess(api_server.kubeconfig, namespace, tmp_path / "log", *flags) as operator,
    ):
        for number in range(OBJECTS):
            name = f"object-{number}"
            endpoints = {"source__endpoint": endpoint, "sink__tablestore__endpoint": endpoint}
            document = tunnel_object(name, **endpoints, source__tunnel__name=name)
            document["metadata"]["namespace"] = namespace
            api.create(document)
        operator.start()

        def all_begun() -> bool:
            return all(item["metadata"].get("finalizers") for item in api.list("TablestoreTunnel", namespace))

        wait_until(all_begun, STARTING, "every loop has begun", explain=operator.last_output)
        time.sleep(1.0)  # then every loop waits in a call, which takes much longer than a second

        code = operator.stop()

        assert code == 0, operator.last_output()
        lease = api_server.must("-n", namespace, "get", "lease", "ots-tunnel-operator", "-o", "jsonpath={.spec}")
        assert '"holderIdentity":""' in lease


def test_a_standby_ends_too_and_leaves_the_lease_unchanged(api_server: ApiServer, tmp_path: Path) -> None:
    namespace = "standby"
    api_server.must("create", "namespace", namespace)
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": "2026-11-01T00:00:00.000000Z"}
    metadata = {"name": "ots-tunnel-operator", "namespace": namespace}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    api_server.must("create", "-f", "-", document=lease)
    log = tmp_path / "log"
    with OperatorProcess(api_server.kubeconfig, namespace, log, "--lease-namespace", namespace) as operator:
        operator.start()
        wait_until(
            lambda: "serving probes" in operator.last_output(), STARTING, "it has started", explain=operator.last_output
        )

        assert operator.stop() == 0, operator.last_output()
    held = api_server.must("-n", namespace, "get", "lease", "ots-tunnel-operator", "-o", "jsonpath={.spec}")
    assert '"holderIdentity":"another"' in held
