"""Account, budget and placement of worker pods."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests import worker_deployment, worker_document
from ots_tunnel_operator.manifests.pod_monitor import pod_monitor
from ots_tunnel_operator.manifests.worker_account import has_own_account, service_account
from ots_tunnel_operator.manifests.worker_network import network_policy
from ots_tunnel_operator.manifests.worker_spread import disruption_budget
from ots_tunnel_operator.settings import WorkerNetwork
from tests.support.operator.objects import tunnel_object


def parsed(**pod: Any) -> TablestoreTunnel:
    document = tunnel_object(workers={"podTemplate": {"spec": pod}} if pod else {})
    document["metadata"]["uid"] = "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11"
    return TablestoreTunnel.from_body(document)


def pod_spec(obj: TablestoreTunnel, **options: bool) -> dict[str, Any]:
    config = worker_document.worker_config(obj, "tunnel-1")
    found: dict[str, Any] = worker_deployment.deployment(obj, config, "worker:1", 1, **options)["spec"]["template"]
    return dict(found["spec"])


def test_the_account_mounts_no_token_and_holds_the_pull_secrets() -> None:
    account = service_account(parsed(), ("registry", "mirror"))

    validate(account, "1.34", strict=True)
    assert (account["metadata"]["name"], account["automountServiceAccountToken"]) == ("flights-copy-workers", False)
    assert account["imagePullSecrets"] == [{"name": "registry"}, {"name": "mirror"}]
    assert "imagePullSecrets" not in service_account(parsed())
    assert account["metadata"]["ownerReferences"][0]["name"] == "flights-copy"


def test_the_pods_run_under_their_own_account_without_a_token() -> None:
    spec = pod_spec(parsed())

    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("flights-copy-workers", False)


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
def test_an_account_of_the_pod_template_replaces_it(field: str) -> None:
    obj = parsed(**{field: "mine", "automountServiceAccountToken": True})
    spec = pod_spec(obj)

    assert not has_own_account(obj)
    assert {key: value for key, value in spec.items() if key.startswith("serviceAccount")} == {field: "mine"}
    assert spec["automountServiceAccountToken"] is True


def test_a_budget_lets_one_worker_go_at_a_time_and_never_holds_a_node() -> None:
    budget = disruption_budget(parsed())

    validate(budget, "1.34", strict=True)
    # a minimum would hold the node of a single worker
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    config = worker_document.worker_config(parsed(), "tunnel-1")
    deployment = worker_deployment.deployment(parsed(), config, "worker:1", 1)
    assert budget["spec"]["selector"] == deployment["spec"]["selector"]


PROMETHEUS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


def test_a_network_policy_admits_its_peers_to_one_port_and_nobody_else() -> None:
    policy = network_policy(parsed(), WorkerNetwork((PROMETHEUS,)))

    validate(policy, "1.34", strict=True)
    config = worker_document.worker_config(parsed(), "tunnel-1")
    workers = worker_deployment.deployment(parsed(), config, "worker:1", 1)["spec"]
    assert policy["spec"]["podSelector"] == workers["selector"]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    (rule,) = policy["spec"]["ingress"]
    (port,) = workers["template"]["spec"]["containers"][0]["ports"]
    assert rule == {"from": [PROMETHEUS], "ports": [{"port": port["containerPort"], "protocol": "TCP"}]}
    assert policy["metadata"]["ownerReferences"][0]["name"] == "flights-copy"


def test_without_peers_a_network_policy_admits_nobody() -> None:
    # a rule with an empty list would admit everybody
    assert network_policy(parsed(), WorkerNetwork(()))["spec"]["ingress"] == []


def test_a_network_policy_limits_what_workers_connect_to_only_where_asked() -> None:
    https = {"ports": [{"port": 443, "protocol": "TCP"}]}
    policy = network_policy(parsed(), WorkerNetwork((PROMETHEUS,), (https,)))

    validate(policy, "1.34", strict=True)
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["egress"] == [https]
    # no rule allows nothing
    assert network_policy(parsed(), WorkerNetwork((), ()))["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_the_pod_monitor_is_that_of_the_file() -> None:
    found = pod_monitor(parsed(), "15s", {"release": "prometheus"})
    text = yaml.safe_dump(found, sort_keys=False)

    path = Path(__file__).with_name("pod-monitor.yaml")
    if os.environ.get("OTS_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def test_workers_are_spread_where_possible() -> None:
    constraints = pod_spec(parsed())["topologySpreadConstraints"]

    assert [item["topologyKey"] for item in constraints] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert {item["whenUnsatisfiable"] for item in constraints} == {"ScheduleAnyway"}


def test_a_pod_template_replaces_the_spread_of_one_label_or_all_of_it() -> None:
    strict = {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    changed = pod_spec(parsed(topologySpreadConstraints=[strict]))["topologySpreadConstraints"]

    assert [item["whenUnsatisfiable"] for item in changed] == ["ScheduleAnyway", "DoNotSchedule"]
    assert "topologySpreadConstraints" not in pod_spec(parsed(topologySpreadConstraints=None))


def test_user_and_groups_are_left_to_a_cluster_that_assigns_them() -> None:
    context = pod_spec(parsed(), cluster_assigns_user=True)["securityContext"]

    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod_spec(parsed())["securityContext"].items() >= {"runAsUser": 10001, "fsGroup": 10001}.items()
