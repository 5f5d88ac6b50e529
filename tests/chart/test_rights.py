"""The operator's role holds the rights that its calls need, and no other.

The calls are read from the source: every call of a cluster's methods names a kind, or hands on the caller's, or is one
of a rendered child. A new call of another form fails here until it is described.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ots_tunnel_operator
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube import kinds
from ots_tunnel_operator.kube.kinds import Kind, kind_of
from ots_tunnel_operator.manifests import (
    pod_monitor,
    worker_account,
    worker_deployment,
    worker_document,
    worker_spread,
)
from ots_tunnel_operator.manifests.spark import rights as spark_rights
from ots_tunnel_operator.plan.snapshot import snapshot_objects
from ots_tunnel_operator.settings import Settings
from tests.chart.conftest import Helm, Right, rights
from tests.support.operator.objects import tunnel_object

pytestmark = pytest.mark.api

SOURCE = Path(ots_tunnel_operator.__file__).parent
#: Methods of a cluster, and the rights that a call needs. Reads come from a watch, which begins with a list.
VERBS = {
    "get": {"get", "list", "watch"},
    "list": {"list", "watch"},
    "create": {"create"},
    "replace": {"update"},
    "patch": {"patch"},
    "delete": {"delete"},
    "DeleteObject": {"delete"},
}
READS = {"get", "list"}
#: Writes whose kind is not in the call: they hand on that of a caller, which is looked at there.
HANDED_ON = {
    ("apply/child_writer.py", "delete"),
    ("kube/write_through.py", "create"),
    ("kube/write_through.py", "replace"),
    ("kube/write_through.py", "patch"),
    ("kube/write_through.py", "delete"),
}
#: What kopf sends: the watch of our objects and its finalizer; in every namespace it watches the definitions, too.
KOPF = {
    ("ots-tunnel.dev", "tablestoretunnels", "list"),
    ("ots-tunnel.dev", "tablestoretunnels", "watch"),
    ("ots-tunnel.dev", "tablestoretunnels", "patch"),
}
#: Asked for by the API server with the owner references of children, whose owner cannot be deleted before them.
OWNERS = {("ots-tunnel.dev", "tablestoretunnels/finalizers", "update")}
#: What `helm test` runs has an account of its own (test_upgrade.py).
OF_THE_TEST = "installation.py"
DEFINITIONS = {("apiextensions.k8s.io", "customresourcedefinitions", verb) for verb in ("list", "watch")}


def calls() -> Iterator[tuple[str, str, Kind | None, str]]:
    """Calls of a cluster's methods: file, method, kind (None where it is not named) and subresource."""
    constants = {name: kind for name, kind in vars(kinds).items() if isinstance(kind, Kind)}
    for file in SOURCE.rglob("*.py"):
        if file.name == OF_THE_TEST:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            match node.func:
                case ast.Name("DeleteObject" as method):
                    pass
                case ast.Attribute(receiver, method) if method in VERBS:
                    if not ast.unparse(receiver).endswith(("kube", "cluster", "reader")):
                        continue
                case _:
                    continue
            first, last = node.args[0], node.args[-1]
            kind = constants.get(first.id) if isinstance(first, ast.Name) else None
            part = last.value if method == "patch" and isinstance(last, ast.Constant) else ""
            yield str(file.relative_to(SOURCE)), method, kind, str(part)


def group(kind: Kind) -> str:
    return kind.api_version.rpartition("/")[0]


def rendered() -> set[Kind]:
    document = tunnel_object(engine__baseData="Spark")
    document["metadata"]["uid"] = "u"
    of = TablestoreTunnel.from_body(document)
    config = worker_document.worker_config(of, "tunnel-1")
    workers = (
        worker_document.config_map(of, config),
        worker_account.service_account(of),
        worker_deployment.deployment(of, config, "w:1", 1),
        worker_spread.disruption_budget(of),
        pod_monitor.pod_monitor(of),
    )
    return {kind_of(item) for item in (*workers, *snapshot_objects(of, "t", Settings(spark_image="s:1")))}


def needed() -> set[Right]:
    """The rights of every call but those of the leader election, which has a role of its own."""
    found: set[Right] = set()
    for _, method, kind, part in calls():
        if kind is None or kind is kinds.LEASE:
            continue
        resource = f"{kind.plural}/{part}" if part else kind.plural
        # Secrets are watched one by one, by name
        verbs = VERBS[method] - ({"list"} if kind is kinds.SECRET else set())
        found |= {(group(kind), resource, verb) for verb in verbs}
    applied = {"get", "list", "watch", "create", "patch"}
    return found | {(group(kind), kind.plural, verb) for kind in rendered() for verb in applied}


def drivers() -> set[Right]:
    """What the operator grants to a driver, and therefore has to hold."""
    document = tunnel_object(engine__baseData="Spark")
    document["metadata"]["uid"] = "u"
    return rights(spark_rights.role(TablestoreTunnel.from_body(document))["rules"])


def roles(helm: Helm, *settings: str) -> dict[str, set[Right]]:
    """Rights by kind of role; that of the leader election is apart."""
    return {
        "leader" if item["metadata"]["name"].endswith("-leader") else item["kind"]: rights(item["rules"])
        for item in helm.template(*settings, "rbac.aggregateClusterRoles=false")
        if item["kind"] in {"Role", "ClusterRole"}
    }


def test_every_write_names_its_kind_or_hands_on_a_named_one() -> None:
    assert {(file, method) for file, method, kind, _ in calls() if kind is None and method not in READS} == HANDED_ON


def test_the_role_in_every_namespace_holds_what_is_called_and_nothing_else(helm: Helm) -> None:
    lease = {("coordination.k8s.io", "leases", "get")}

    assert roles(helm)["ClusterRole"] == needed() | KOPF | OWNERS | DEFINITIONS | drivers() | lease


def test_rights_to_network_policies_come_with_their_value(helm: Helm) -> None:
    policies = {("networking.k8s.io", "networkpolicies", verb) for verb in ("get", "list", "watch", "create", "patch")}
    switched_on = roles(helm, "workers.networkPolicy.enabled=true")["ClusterRole"]

    assert switched_on - roles(helm)["ClusterRole"] == policies


def test_rights_to_pod_monitors_go_with_their_value(helm: Helm) -> None:
    gone = roles(helm)["ClusterRole"] - roles(helm, "workers.podMonitor.enabled=false")["ClusterRole"]

    assert {resource for _, resource, _ in gone} == {"podmonitors"}


def test_the_role_in_some_namespaces_holds_what_is_called_and_nothing_else(helm: Helm) -> None:
    assert roles(helm, 'watch.namespaces=["shop"]')["Role"] == needed() | KOPF | OWNERS | drivers()


def test_the_role_of_the_election_holds_what_is_called_and_nothing_else(helm: Helm) -> None:
    called = {method for _, method, kind, _ in calls() if kind is kinds.LEASE}

    # a Lease is read from the API server itself
    verbs = {"get"} | {verb for method in called - {"get"} for verb in VERBS[method]}
    assert {verb for _, _, verb in roles(helm)["leader"]} == verbs == {"get", "create", "update"}
