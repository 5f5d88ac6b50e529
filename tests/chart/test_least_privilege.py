"""The operator works under exactly the chart's roles on a real API server, and uses every right in them.

The API server's audit log is the witness: it has each call with its verb and resource as RBAC sees them, and whether it
was allowed. So a right that is missing shows as a refusal, and a right too many as one that no call has used. Two kinds
of rights are not those of calls: what a Spark driver's Role grants has to be held by who grants it, and the right on
finalizers is asked for by an admission plugin, which runs here. Both are judged by what the API server then refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ots_emulator import Emulator
from ots_tunnel_operator import names
from tests.chart.audit import POLICY, calls, reasons, refused, used
from tests.chart.conftest import CHART, Helm, Right, rights
from tests.operator.scenes.operator_process import OperatorProcess
from tests.operator.scenes.pass_scene import fill
from tests.support.kube import monitoring_kinds
from tests.support.kube.api_server import ApiServer, cache, missing_program, running_api_server
from tests.support.kube.kube_api import KubeApi
from tests.support.lacking import lack
from tests.support.operator.objects import tunnel_object
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(400), pytest.mark.lasts(60)]

RELEASE, HOME, NAMESPACE = "ott-ots-tunnel-operator", "ots", "shop"
USER = f"system:serviceaccount:{HOME}:{RELEASE}"
#: Asked for by the admission plugin OwnerReferencesPermissionEnforcement.
OWNERS: Right = ("ots-tunnel.dev", "tablestoretunnels/finalizers", "update")
#: Seconds that one step of the scenario may take beside other tests.
PATIENCE = 120.0
FAST = ("--poll-seconds", "0.5", "--status-seconds", "0")
#: Children of an object with workers, and of one with Spark: kind and name.
CHILDREN = (
    ("ConfigMap", "copy-config"),
    ("ServiceAccount", "copy-workers"),
    ("Deployment", "copy"),
    ("PodDisruptionBudget", "copy-workers"),
    ("PodMonitor", "copy-workers"),
)
#: What the operator is told where the values switch network policies on, as the chart renders it.
NETWORK = ("--worker-network", '{"from": [{"namespaceSelector": {}}]}')
NETWORK_CHILD = ("NetworkPolicy", "copy-workers")
SPARK_CHILDREN = (
    ("ServiceAccount", "spark-spark"),
    ("Role", "spark-spark"),
    ("RoleBinding", "spark-spark"),
    ("ConfigMap", "spark-snapshot-config"),
    ("SparkApplication", "spark-snapshot"),
)


@dataclass
class Scene:
    """An operator under the chart's roles, and an admin beside it."""

    api: ApiServer
    kube: KubeApi
    emulator: Emulator
    operator: OperatorProcess
    children: tuple[tuple[str, str], ...]

    def create(self, name: str, *, annotations: dict[str, str] | None = None, **changes: Any) -> None:
        places = {"source__endpoint": self.emulator.endpoint}
        if "sink" not in changes:
            places["sink__tablestore__endpoint"] = self.emulator.endpoint
            places["sink__tablestore__table"] = f"{name}_copy"
        document = tunnel_object(name, **places, source__tunnel__name=name, deletionPolicy="Delete", **changes)
        document["metadata"] |= {"namespace": NAMESPACE, "annotations": annotations or {}}
        self.kube.create(document)

    def until(self, reached: Any, what: str) -> None:
        wait_until(reached, PATIENCE, what, pause=0.2, explain=self._explain)

    def reason(self, name: str, kind: str) -> str:
        found = self.kube.get("TablestoreTunnel", NAMESPACE, name) or {}
        conditions = (found.get("status") or {}).get("conditions") or ()
        return next((item["reason"] for item in conditions if item["type"] == kind), "")

    def spoil(self, kind: str, name: str) -> None:
        """Take a label from a child, and wait until the operator has set it back."""
        change = {"metadata": {"labels": {names.LABEL_NAME: "spoilt"}}}
        self.kube.patch(kind, NAMESPACE, name, change)

        def is_mended() -> bool:
            found = self.kube.get(kind, NAMESPACE, name) or {"metadata": {}}
            return found["metadata"].get("labels", {}).get(names.LABEL_NAME) not in (None, "spoilt")

        self.until(is_mended, f"{kind} {name} is set back")

    def has(self, kind: str, name: str) -> bool:
        return self.kube.get(kind, NAMESPACE, name) is not None

    def delete(self, name: str) -> None:
        self.kube.delete("TablestoreTunnel", NAMESPACE, name)
        self.until(lambda: not self.has("TablestoreTunnel", name), f"{name} is released")

    def _explain(self) -> str:
        objects = self.kube.list("TablestoreTunnel", NAMESPACE)
        return yaml.safe_dump({item["metadata"]["name"]: item.get("status") for item in objects}) + (
            self.operator.last_output()
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that records every call of an account, and enforces rights on owners."""
    if reason := missing_program("kubeone", "kubectl"):
        lack("kubernetes", reason)
    folder = tmp_path_factory.mktemp("least") / "server"
    flags = (f"--audit-policy-file={POLICY}", "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
    with running_api_server(folder, *flags) as found:
        definition = cache() / "spark-operator-chart" / "crds" / "sparkoperator.k8s.io_sparkapplications.yaml"
        if not definition.exists():
            lack("kubernetes", f"{definition.name} is not there (tests/cluster/build.sh brings the chart)")
        found.install_definitions(definition)
        # with one of them the chart expects all
        for kind in ("PodMonitor", "ServiceMonitor", "PrometheusRule"):
            found.must("apply", "-f", "-", document=monitoring_kinds.definition(kind))
            served = f"crd/{kind.lower()}s.{monitoring_kinds.GROUP}"
            found.must("wait", "--for=condition=Established", served, "--timeout=30s")
        yield found


def owned_child() -> dict[str, Any]:
    """A ConfigMap that blocks the deletion of an owner."""
    owner = {
        "apiVersion": "ots-tunnel.dev/v1alpha1",
        "kind": "TablestoreTunnel",
        "name": "owner",
        "uid": "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11",
        "blockOwnerDeletion": True,
    }
    metadata = {"name": "child", "namespace": "default", "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def knows_owners(server: ApiServer) -> bool:
    """Whether the admission plugin knows our kind: it learns of new kinds every 30 s, and refuses everybody before."""
    return server.kubectl("create", "--dry-run=server", "-f", "-", document=owned_child()).returncode == 0


@contextmanager
def installed(helm: Helm, server: ApiServer, folder: Path, *settings: str) -> Iterator[Scene]:
    """The chart installed with settings, and its operator under its account."""
    kube = KubeApi(server.kubeconfig)
    server.must("create", "namespace", NAMESPACE)
    options = [part for setting in settings for part in ("--set-json", setting)]
    install = ("install", "ott", str(CHART), "--namespace", HOME, "--create-namespace", *options)
    done = helm.run(*install, kubeconfig=server.kubeconfig)
    assert done.returncode == 0, done.stderr
    server.must("wait", "--for=condition=Established", "crd", "tablestoretunnels.ots-tunnel.dev", "--timeout=30s")
    wait_until(lambda: knows_owners(server), PATIENCE, "owners are known", pause=0.5)
    keys = ["--from-literal=accessKeyId=test-id", "--from-literal=accessKeySecret=test-secret"]
    server.must("-n", NAMESPACE, "create", "secret", "generic", "ots-credentials", *keys)
    scope = NAMESPACE if settings else None
    network = NETWORK if settings else ()
    lease = ("--lease-namespace", HOME, "--lease-name", RELEASE)
    with ExitStack() as stack:
        emulator = stack.enter_context(Emulator())
        fill(emulator, "flights")
        account = as_account(server, folder / "kubeconfig")
        operator = stack.enter_context(OperatorProcess(account, scope, folder / "log", *lease, *FAST, *network))
        yield Scene(server, kube, emulator, operator, (*CHILDREN, NETWORK_CHILD) if settings else CHILDREN)
    done = helm.run("uninstall", "ott", "--namespace", HOME, kubeconfig=server.kubeconfig)
    assert done.returncode == 0, done.stderr
    for namespace in (NAMESPACE, HOME):
        server.must("delete", "namespace", namespace, "--timeout=60s")


def as_account(server: ApiServer, path: Path) -> Path:
    """A kubeconfig with a token of the operator's account."""
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": server.must("-n", HOME, "create", "token", RELEASE).strip()}
    path.write_text(yaml.safe_dump(document))
    return path


def live(scene: Scene) -> None:
    """Everything that the operator does to a cluster, from its start to its end."""
    scene.operator.start()
    scene.create("bad", source__table="nowhere")
    scene.until(lambda: scene.reason("bad", "TunnelReady") == "TableNotFound", "the bad object says why")
    scene.create("elsewhere", annotations={names.ANNOTATION_OPERATOR: "other/operator"})
    scene.create("copy", monitoring={"podMonitor": True})
    for kind, name in scene.children:
        scene.until(lambda kind=kind, name=name: scene.has(kind, name), f"{kind} {name}")
    for kind, name in scene.children:
        scene.spoil(kind, name)
    scene.kube.patch("TablestoreTunnel", NAMESPACE, "copy", {"spec": {"monitoring": {"podMonitor": False}}})
    scene.until(lambda: not scene.has("PodMonitor", "copy-workers"), "the PodMonitor is removed")
    scene.kube.patch("TablestoreTunnel", NAMESPACE, "copy", {"spec": {"suspend": True}})
    scene.until(lambda: scene.reason("copy", "Suspended") == "SuspendRequested", "suspended")
    scene.create("spark", engine={"baseData": "Spark", "stream": "Workers"})
    for kind, name in SPARK_CHILDREN:
        scene.until(lambda kind=kind, name=name: scene.has(kind, name), f"{kind} {name}")
    for kind, name in SPARK_CHILDREN:
        scene.spoil(kind, name)


def finish(scene: Scene) -> set[Right]:
    """Delete the objects and end the operator; return what the driver's Role granted."""
    granted = rights((scene.kube.get("Role", NAMESPACE, "spark-spark") or {})["rules"])
    for name in ("spark", "copy", "bad"):
        scene.delete(name)
    # the object of an operator that never was
    scene.kube.patch("TablestoreTunnel", NAMESPACE, "elsewhere", {"metadata": {"annotations": None}})
    scene.delete("elsewhere")
    assert scene.operator.stop() == 0, scene.operator.last_output()
    return granted


def held(server: ApiServer) -> set[Right]:
    """The rights that the release's roles grant to the account, as the API server has them."""
    found: set[Right] = set()
    for kind, names_of in (("clusterroles", (RELEASE,)), ("roles", (RELEASE, f"{RELEASE}-leader"))):
        listed = json.loads(server.must("get", kind, *(["-A"] if kind == "roles" else []), "-o", "json"))
        for role in listed["items"]:
            if role["metadata"]["name"] in names_of:
                found |= rights(role["rules"])
    return found


@pytest.mark.parametrize(
    "settings",
    [(), (f'watch.namespaces=["{NAMESPACE}"]', "workers.networkPolicy.enabled=true")],
    ids=["cluster", "namespaces"],
)
def test_the_operator_needs_every_right_that_it_has_and_no_other(
    helm: Helm, server: ApiServer, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    log = server.kubeconfig.parent / "audit.log"
    before = len(list(calls(log, USER)))
    with installed(helm, server, tmp_path, *settings) as scene:
        live(scene)
        granted = finish(scene)
        rights_held = held(server)
    found = list(calls(log, USER))[before:]

    # an operator of some namespaces cannot read the Lease of another one, and says so (docs/architecture.md 6.2)
    expected = {"get leases.coordination.k8s.io other/operator: 403"} if settings else set()
    assert set(refused(found)) == expected, reasons(found)
    unused = rights_held - used(found) - granted - {OWNERS}
    assert unused == set(), f"no call uses: {sorted(unused)}"
    assert used(found) <= rights_held


def test_a_child_needs_the_right_on_its_owner_where_that_is_enforced(helm: Helm, server: ApiServer) -> None:
    rules = next(item for item in helm.template("crds.enabled=false") if item["kind"] == "ClusterRole")["rules"]
    group, resource, verb = OWNERS

    assert any(group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"] for rule in rules)
    child = owned_child()
    server.must("apply", "--server-side", "-f", str(CHART / "files" / "crd.yaml"))
    server.must("wait", "--for=condition=Established", "crd", "tablestoretunnels.ots-tunnel.dev", "--timeout=30s")
    for name, extra in (("without", []), ("with", [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}])):
        role = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]}, *extra]
        account = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name, "namespace": "default"}}
        server.must("create", "-f", "-", document=account | {"kind": "Role", "rules": role})
        server.must("-n", "default", "create", "rolebinding", name, f"--role={name}", f"--user={name}")

    refusal = server.kubectl("apply", "--server-side", "--as=without", "-f", "-", document=child)
    assert "cannot set blockOwnerDeletion" in refusal.stderr
    server.must("apply", "--server-side", "--as=with", "-f", "-", document=child)
