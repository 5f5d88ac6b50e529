"""One namespace of a real API server, one emulator, a proxy between both and one operator process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from ots_emulator import Emulator
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Action, CellOp, Credentials, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite, TableAdmin, TableSchema
from tests.operator.scenes.crash_proxy import CrashProxy, Middleware, Moment, emulator, kubernetes
from tests.operator.scenes.operator_process import OperatorProcess
from tests.support.kube.kube_api import KubeApi
from tests.support.operator.objects import tunnel_object
from tests.support.waiting import wait_until

#: Longest time of every wait in seconds; generous, for a loaded machine.
PATIENCE = 150.0
#: Seconds between two reads of the API server.
PAUSE = 0.1
KEYS = Credentials("test-id", "test-secret")
SECRET = "ots-credentials"
#: Flags for short pauses, so that the operator notices each step soon.
FAST = ("--poll-seconds", "0.5", "--status-seconds", "0")

Document = dict[str, Any]


class OperatorScene:
    """Everything that a test of the whole operator acts on; `running_scene` creates one."""

    def __init__(self, kube: KubeApi, namespace: str, service: Emulator, proxy: CrashProxy) -> None:
        self.kube = kube
        self.namespace = namespace
        self.service = service
        self.proxy = proxy
        self.admin = TableAdmin(service.endpoint, "demo", static_credentials(KEYS))
        self.operator: OperatorProcess
        self.patience = PATIENCE

    @property
    def endpoint(self) -> str:
        """Address at which the operator reaches the emulator."""
        return self.proxy.service_url

    def create_table(self, name: str = "flights", rows: int = 40) -> None:
        """Create a source table with rows."""
        self.admin.create(TableSchema(name, (KeyColumn("id", KeyType.STRING),), max_versions=3))
        keys = [f"{number:06}" for number in range(rows)]
        for start in range(0, rows, 200):
            self.put(name, keys[start : start + 200], 0)

    def put(self, table: str, keys: list[str], number: int) -> None:
        """Put rows, at most 200."""
        columns = (Column("number", number, None, CellOp.PUT),)
        outcomes = self.admin.write(table, [RowWrite(Action.PUT, (("id", key),), columns) for key in keys])
        assert not [outcome for outcome in outcomes if outcome is not None]

    def create_secret(self, name: str = SECRET, key_id: str = KEYS.access_key_id, secret: str = "test-secret") -> None:
        """Create a Secret with an AccessKey pair."""
        self.kube.create(
            {
                "kind": "Secret",
                "metadata": {"name": name, "namespace": self.namespace},
                "stringData": {"accessKeyId": key_id, "accessKeySecret": secret},
            }
        )

    def tunnel_object(self, name: str = "copy", **changes: Any) -> Document:
        """Return an object of this scene; changes as in `objects.tunnel_object`."""
        places = {"source__endpoint": self.endpoint}
        if "sink" not in changes:
            places["sink__tablestore__endpoint"] = self.endpoint
        document = tunnel_object(name, **(places | changes))
        document["metadata"]["namespace"] = self.namespace
        return document

    def create(self, name: str = "copy", **changes: Any) -> None:
        """Create a `tunnel_object` on the API server."""
        self.kube.create(self.tunnel_object(name, **changes))

    def status(self, name: str = "copy") -> Document:
        """Read the object's status; empty before the first write."""
        found = self.kube.get("TablestoreTunnel", self.namespace, name) or {}
        status: Document = found.get("status") or {}
        return status

    def condition(self, kind: str, name: str = "copy") -> Document:
        """Read one condition; empty before it is written."""
        conditions = self.status(name).get("conditions", ())
        return next((entry for entry in conditions if entry["type"] == kind), {})

    def is_true(self, kind: str, name: str = "copy") -> bool:
        """Whether a condition is True."""
        return bool(self.condition(kind, name).get("status") == "True")

    def arm(self, number: int, moment: Moment) -> None:
        """Kill the operator at a write."""
        self.proxy.arm(number, moment, self.operator.kill)

    def until(self, reached: Callable[[], bool], what: str, seconds: float | None = None) -> None:
        """Wait for a state; a failure shows the status and the end of the operator's output."""
        wait_until(reached, seconds or self.patience, what, pause=PAUSE, explain=self.explain)

    def until_quiet(self, seconds: float) -> None:
        """Wait until the operator has written nothing for this many seconds."""
        last, since = len(self.proxy.writes), time.monotonic()

        def quiet() -> bool:
            nonlocal last, since
            if len(self.proxy.writes) != last:
                last, since = len(self.proxy.writes), time.monotonic()
            return time.monotonic() - since > seconds

        self.until(quiet, f"{seconds} s without a write")

    def explain(self) -> str:
        """Return statuses, writes and output, for the message of a failed test."""
        objects = self.kube.list("TablestoreTunnel", self.namespace)
        statuses = {item["metadata"]["name"]: item.get("status") for item in objects}
        writes = "\n".join(self.proxy.writes[-20:])
        return f"{yaml.safe_dump(statuses)}\nwrites:\n{writes}\noperator:\n{self.operator.last_output()}"


@contextmanager
def running_scene(
    kubeconfig: Path,
    namespace: str,
    folder: Path,
    *,
    flags: tuple[str, ...] = FAST,
    middleware: Middleware | None = None,
    is_forked: bool = False,
) -> Iterator[OperatorScene]:
    """Create a namespace with a Secret and a table of 40 rows; the operator is not started yet.

    Args:
        flags: of the operator.
        middleware: between the operator and the API server.
        is_forked: as of an `OperatorProcess`.
    """
    kube = KubeApi(kubeconfig)
    kube.create_namespace(namespace)
    with ExitStack() as stack:
        service = stack.enter_context(Emulator())
        proxy = stack.enter_context(CrashProxy(kubernetes(kubeconfig), emulator(service.endpoint), middleware))
        scene = OperatorScene(kube, namespace, service, proxy)
        stack.callback(scene.admin.close)
        behind = folder / f"{namespace}.kubeconfig"
        behind.write_text(yaml.safe_dump(_kubeconfig(proxy.kube_url)))
        log = folder / f"{namespace}.log"
        scene.operator = stack.enter_context(OperatorProcess(behind, namespace, log, *flags, is_forked=is_forked))
        scene.create_secret()
        scene.create_table()
        yield scene


def _kubeconfig(server: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "api", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "api", "context": {"cluster": "api", "user": "nobody"}}],
        "current-context": "api",
    }
