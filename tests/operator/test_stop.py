"""SIGTERM ends the operator within seconds and frees the Lease, also while endpoints do not answer."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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

NAMESPACE = "stop"
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


def test_an_endpoint_that_never_answers_does_not_delay_the_exit(api_server: ApiServer, tmp_path: Path) -> None:
    api = KubeApi(api_server.kubeconfig)
    api.create_namespace(NAMESPACE)
    data = {key: base64.b64encode(b"x").decode() for key in ("accessKeyId", "accessKeySecret")}
    metadata = {"name": "ots-credentials", "namespace": NAMESPACE}
    api.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    flags = ("--lease-namespace", NAMESPACE)
    with (
        swallowing_endpoint() as endpoint,
        OperatorProcess(api_server.kubeconfig, NAMESPACE, tmp_path / "log", *flags) as operator,
    ):
        for number in range(OBJECTS):
            name = f"object-{number}"
            endpoints = {"source__endpoint": endpoint, "sink__tablestore__endpoint": endpoint}
            document = tunnel_object(name, **endpoints, source__tunnel__name=name)
            document["metadata"]["namespace"] = NAMESPACE
            api.create(document)
        operator.start()

        def all_begun() -> bool:
            return all(item["metadata"].get("finalizers") for item in api.list("TablestoreTunnel", NAMESPACE))

        wait_until(all_begun, STARTING, "every loop has begun", explain=operator.last_output)
        time.sleep(1.0)  # then every loop waits in a call, which takes much longer than a second

        # waiting for the calls would take two rounds of SOCKET_TIMEOUT, because there are fewer threads than objects
        code = operator.stop()

        assert code == 0, operator.last_output()
        lease = api_server.must("-n", NAMESPACE, "get", "lease", "ots-tunnel-operator", "-o", "jsonpath={.spec}")
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
