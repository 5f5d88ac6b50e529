"""Two operators whose scopes overlap, and one that was suspended: only one of them ever acts on an object."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_tunnel_operator.kube.claims import GRACE_SECONDS, TAKEOVER_SECONDS
from ots_tunnel_operator.names import ANNOTATION_OPERATOR
from tests.operator.scenes.operator_process import OperatorProcess
from tests.operator.scenes.pass_scene import fill
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(400)]

PATIENCE = 150.0
FAST = ("--poll-seconds", "0.5", "--status-seconds", "0")
#: Actions of log lines about a change that an operator made.
ACTS = {"applied_object", "created_tunnel", "created_destination", "deleted_object", "scaled_down"}
#: Those on a new object, and the kinds of what is applied.
ACTS_OF_AN_OBJECT = [
    "created_destination",
    "created_tunnel",
    "applied_object ConfigMap",
    "applied_object Deployment",
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


@pytest.mark.lasts(10)
def test_a_namespace_s_operator_and_the_cluster_s_never_both_act(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "shared") as scene:
        one = scene.operator("release-one")
        other = scene.operator("release-two", everywhere=True)
        one.start()
        other.start()
        for process in ("release-one", "release-two"):
            scene.until(lambda process=process: scene.logged(process, "leading"), f"{process} leads")
        names = [f"copy-{number}" for number in range(4)]
        for name in names:
            scene.create(name)
        for name in names:
            scene.until(lambda name=name: scene.replicas(name) == 1, f"{name} has workers")

        holders = {name: scene.holder(name) for name in names}
        assert set(holders.values()) <= {f"release-{which}/ots-tunnel-operator" for which in ("one", "two")}
        for process in ("release-one", "release-two"):
            mine = [name for name, holder in holders.items() if holder.startswith(process)]
            acts = scene.acts(process)
            assert {name for name, _ in acts} == set(mine)
            for name in mine:
                assert [act for owner, act in acts if owner == name] == ACTS_OF_AN_OBJECT

        for name in names:
            api_server.must("-n", scene.namespace, "delete", "ott", name, "--timeout=40s")


@pytest.mark.lasts(24)
def test_a_suspended_leader_ends_without_a_write_when_it_wakes_up(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "asleep") as scene:
        first = scene.operator("first", home="asleep")
        second = scene.operator("second", home="asleep")
        first.start()
        scene.until(lambda: scene.logged("first", "leading"), "the first one leads")
        scene.create("copy")
        scene.until(lambda: scene.replicas("copy") == 1, "workers")
        second.start()
        scene.until(lambda: scene.logged("second", "serving"), "the second one waits")
        before = scene.acts("first")

        os.kill(first.pid, signal.SIGSTOP)
        scene.until(lambda: scene.logged("second", "leading"), "the second one leads")
        scene.api.must("-n", scene.namespace, "scale", "ott/copy", "--replicas=3")
        scene.until(lambda: scene.replicas("copy") == 3, "the second one acts")
        os.kill(first.pid, signal.SIGCONT)

        scene.until(lambda: not first.is_running, "the first one ends")
        assert first.stop() == 1
        assert scene.acts("first") == before
        assert scene.holder("copy") == "asleep/ots-tunnel-operator"


@pytest.mark.lasts(37)
def test_a_leader_whose_event_loop_stands_still_loses_the_lease_and_ends(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "blocked") as scene:
        first = scene.operator("stuck", home="blocked", can_block=True)
        second = scene.operator("next", home="blocked")
        first.start()
        scene.until(lambda: scene.logged("stuck", "leading"), "the first one leads")
        scene.create("copy")
        scene.until(lambda: scene.replicas("copy") == 1, "workers")
        second.start()
        scene.until(lambda: scene.logged("next", "serving"), "the second one waits")

        first.block()
        scene.until(lambda: not first.is_running, "the first one ends")
        scene.until(lambda: scene.logged("next", "leading"), "the second one leads")

        assert scene.logged("stuck", "loop_stalled")
        assert first.stop() == 1
        scene.api.must("-n", scene.namespace, "scale", "ott/copy", "--replicas=3")
        scene.until(lambda: scene.replicas("copy") == 3, "the second one acts")


@pytest.mark.long
@pytest.mark.lasts(200)
def test_what_an_uninstalled_operator_served_is_taken_over(api_server: ApiServer, tmp_path: Path) -> None:
    with overlap(api_server, tmp_path, "heritage") as scene:
        first, second = scene.operator("gone"), scene.operator("heir", everywhere=True)
        first.start()
        scene.create("copy")
        scene.until(lambda: scene.replicas("copy") == 1, "workers")
        second.start()
        scene.until(lambda: scene.logged("heir", "served_elsewhere"), "the heir leaves the object alone")
        first.kill()
        began = time.monotonic()
        scene.api.must("-n", scene.namespace, "scale", "ott/copy", "--replicas=3")

        scene.until(lambda: scene.replicas("copy") == 3, "the heir acts", 2 * TAKEOVER_SECONDS + PATIENCE)

        assert time.monotonic() - began > GRACE_SECONDS
        assert scene.holder("copy") == "heir/ots-tunnel-operator"
