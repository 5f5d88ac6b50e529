"""One namespace that several operator processes serve; what each of them did is read from its log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ots_emulator import Emulator
from ots_tunnel_operator.names import ANNOTATION_OPERATOR
from tests.operator.scenes.operator_process import OperatorProcess
from tests.operator.scenes.pass_scene import fill
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object
from tests.support.waiting import wait_until

PATIENCE = 150.0
FAST = ("--poll-seconds", "0.5", "--status-seconds", "0")
#: Actions of log lines about a change that an operator made.
ACTS = {"applied_object", "created_tunnel", "created_destination", "deleted_object", "scaled_down"}
#: Those on a new object, and the kinds of what is applied.
ACTS_OF_AN_OBJECT = [
    "created_destination",
    "created_tunnel",
    "applied_object ServiceAccount",
    "applied_object ConfigMap",
    "applied_object Deployment",
    "applied_object PodDisruptionBudget",
]


class Overlap:
    """One namespace that several operators serve, each with a Lease in a namespace of its own."""

    def __init__(self, api: ApiServer, emulator: Emulator, namespace: str, folder: Path, stack: ExitStack) -> None:
        self.api = api
        self.emulator = emulator
        self.namespace = namespace
        self._folder = folder
        self._stack = stack

    def operator(
        self, name: str, *, everywhere: bool = False, home: str = "", can_block: bool = False
    ) -> OperatorProcess:
        """An operator process with its own log; `home` is the namespace of its Lease."""
        home = home or name
        if self.api.kubectl("get", "namespace", home).returncode:
            self.api.must("create", "namespace", home)
        log = self._folder / f"{name}.log"
        flags = ("--lease-namespace", home, *FAST)
        scope = None if everywhere else self.namespace
        return self._stack.enter_context(OperatorProcess(self.api.kubeconfig, scope, log, *flags, can_block=can_block))

    def acts(self, name: str) -> list[tuple[str, str]]:
        """What an operator did to objects of the namespace, in order, by its log.

        An operator of the whole cluster also serves what other tests have left in their namespaces.
        """
        log = self._folder / f"{name}.log"
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
        mine = [line for line in lines if line.get("namespace") == self.namespace and line.get("action") in ACTS]
        return [(line["object"], " ".join([line["action"], *filter(None, [line.get("kind")])])) for line in mine]

    def logged(self, name: str, action: str) -> bool:
        return f'"{action}"' in (self._folder / f"{name}.log").read_text()

    def create(self, name: str, **changes: Any) -> None:
        endpoint = {"source__endpoint": self.emulator.endpoint, "sink__tablestore__endpoint": self.emulator.endpoint}
        own = {"source__tunnel__name": name, "sink__tablestore__table": name.replace("-", "_")}
        document = tunnel_object(name, **endpoint, **own, **changes)
        document["metadata"]["namespace"] = self.namespace
        self.api.must("create", "-f", "-", document=document)

    def holder(self, name: str) -> str:
        found = json.loads(self.api.must("-n", self.namespace, "get", "ott", name, "-o", "json"))
        return str((found["metadata"].get("annotations") or {}).get(ANNOTATION_OPERATOR, ""))

    def replicas(self, name: str) -> int:
        done = self.api.kubectl("-n", self.namespace, "get", "deployment", name, "-o", "jsonpath={.spec.replicas}")
        return int(done.stdout or -1) if done.returncode == 0 else -1

    def until(self, reached: Any, what: str, seconds: float = PATIENCE) -> None:
        def logs() -> str:
            return "\n".join(path.read_text()[-2000:] for path in self._folder.glob("*.log"))

        wait_until(reached, seconds, what, pause=0.2, explain=logs)


@contextmanager
def overlap(api: ApiServer, folder: Path, namespace: str) -> Iterator[Overlap]:
    api.must("create", "namespace", namespace)
    keys = ["--from-literal=accessKeyId=test-id", "--from-literal=accessKeySecret=test-secret"]
    api.must("-n", namespace, "create", "secret", "generic", "ots-credentials", *keys)
    with ExitStack() as stack:
        emulator = stack.enter_context(Emulator())
        fill(emulator, "flights")
        yield Overlap(api, emulator, namespace, folder, stack)
