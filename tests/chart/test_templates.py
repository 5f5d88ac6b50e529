"""Objects that the chart renders from its values."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes_validate import validate

from ots_tunnel_operator.__main__ import check, run
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests.spark import rights as spark_rights
from tests.chart.conftest import CHART, EVERYTHING, Helm, rights
from tests.support.operator.objects import tunnel_object

# Helm is built together with the local cluster's programs
pytestmark = pytest.mark.api

DIGEST = "sha256:" + "0" * 64
RBAC = "rbac.authorization.k8s.io"


def one(documents: list[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    found = [item for item in documents if item["kind"] == kind and name in (None, item["metadata"]["name"])]
    assert len(found) == 1, [(item["kind"], item["metadata"]["name"]) for item in documents]
    return found[0]


def kinds(documents: list[dict[str, Any]]) -> set[str]:
    return {document["kind"] for document in documents}


def environment(documents: list[dict[str, Any]]) -> dict[str, str]:
    container = one(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    return {item["name"]: item.get("value", "") for item in container["env"]}


def arguments(documents: list[dict[str, Any]]) -> list[str]:
    words: list[str] = one(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    return words


def test_lint_is_strict_and_clean(helm: Helm) -> None:
    done = helm.run("lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("values", [None, EVERYTHING], ids=["defaults", "everything"])
def test_rendered_objects_are_valid(helm: Helm, values: Path | None) -> None:
    for document in helm.template(values=values, tests=True):
        validate(document, "1.34", strict=True)


@pytest.mark.parametrize(
    ("settings", "operator", "worker", "spark_image", "iceberg"),
    [
        (
            (),
            "ots-tunnel:0.1.0",
            "ots-tunnel:0.1.0",
            "ots-tunnel-spark:0.1.0",
            "ots-tunnel-spark-iceberg:0.1.0",
        ),
        (
            ('image.registry="kubeone.local"', 'image.tag="a"', 'sparkImage.tag="b"'),
            "kubeone.local/ots-tunnel:a",
            "kubeone.local/ots-tunnel:a",
            "kubeone.local/ots-tunnel-spark:b",
            "kubeone.local/ots-tunnel-spark-iceberg:a",
        ),
        (
            (
                f'image.digest="{DIGEST}"',
                'workerImage.tag="w"',
                'sparkImage.registry="other"',
                f'sparkIcebergImage.digest="{DIGEST}"',
            ),
            f"ots-tunnel@{DIGEST}",
            "ots-tunnel:w",
            "other/ots-tunnel-spark:0.1.0",
            f"ots-tunnel-spark-iceberg@{DIGEST}",
        ),
    ],
)
def test_images_reach_operator_and_objects(
    helm: Helm, settings: tuple[str, ...], operator: str, worker: str, spark_image: str, iceberg: str
) -> None:
    documents = helm.template(*settings)
    variables = environment(documents)

    assert one(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"] == operator
    assert variables["OTS_OPERATOR_WORKER_IMAGE"] == worker
    assert variables["OTS_OPERATOR_SPARK_IMAGE"] == spark_image
    assert variables["OTS_OPERATOR_SPARK_ICEBERG_IMAGE"] == iceberg


def test_crd_equals_the_models_and_is_kept(helm: Helm) -> None:
    committed = yaml.safe_load((CHART.parents[1] / "crds" / "ots-tunnel.dev_tablestoretunnels.yaml").read_text())

    crd = one(helm.template(), "CustomResourceDefinition")

    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == committed


def test_crd_is_deleted_without_keep(helm: Helm) -> None:
    crd = one(helm.template("crds.keep=false"), "CustomResourceDefinition")

    assert "annotations" not in crd["metadata"]


def test_switches_leave_objects_out(helm: Helm) -> None:
    documents = helm.template(
        "crds.enabled=false",
        "rbac.create=false",
        "serviceAccount.create=false",
        "metrics.service.enabled=false",
        "podDisruptionBudget.enabled=false",
    )

    assert kinds(documents) == {"Deployment"}
    assert one(documents, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "default"


def ports(document: dict[str, Any]) -> dict[str, int]:
    """Names of ports, of a Service or of the operator's container, with their numbers."""
    if document["kind"] == "Service":
        return {each["name"]: each["port"] for each in document["spec"]["ports"]}
    container = document["spec"]["template"]["spec"]["containers"][0]
    return {each["name"]: each["containerPort"] for each in container["ports"]}


def test_the_console_is_on_the_pods_loopback_alone(helm: Helm) -> None:
    documents = helm.template()

    assert [word for word in arguments(documents) if "console" in word] == ["--console-port=8081"]
    assert [ports(one(documents, kind)) for kind in ("Deployment", "Service")] == [{"http": 8080}] * 2


def test_an_exposed_console_is_a_port_of_the_metrics_service(helm: Helm) -> None:
    documents = helm.template("console.exposed=true", "console.port=9000", 'console.names=["tunnels.example"]')

    words = [word for word in arguments(documents) if "console" in word]
    assert words == ["--console-port=9000", "--console-host=0.0.0.0", "--console-name=tunnels.example"]
    assert [ports(one(documents, kind))["console"] for kind in ("Deployment", "Service")] == [9000, 9000]


def test_the_console_can_be_off(helm: Helm) -> None:
    documents = helm.template("console.enabled=false", "console.exposed=true")

    assert not [word for word in arguments(documents) if "console" in word]
    assert [ports(one(documents, kind)) for kind in ("Deployment", "Service")] == [{"http": 8080}] * 2


def test_rights_follow_the_namespaces(helm: Helm) -> None:
    documents = helm.template('watch.namespaces=["shop","lake"]', "rbac.aggregateClusterRoles=false")
    roles = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in documents if item["kind"] == "Role"}

    assert not {"ClusterRole", "ClusterRoleBinding"} & kinds(documents)
    assert roles == {
        ("shop", "ott-ots-tunnel-operator"),
        ("lake", "ott-ots-tunnel-operator"),
        ("ots", "ott-ots-tunnel-operator-leader"),
    }
    assert arguments(documents)[-2:] == ["--namespace=shop", "--namespace=lake"]


def test_rights_on_spark_are_granted_where_spark_is_on(helm: Helm) -> None:
    on, off = (
        rights(one(helm.template(*settings), "ClusterRole", "ott-ots-tunnel-operator")["rules"])
        for settings in ((), ("engines.spark.enabled=false",))
    )

    assert off < on
    assert not {resource for group, resource, _ in off if group in ("sparkoperator.k8s.io", RBAC)}
    # what is left of pods and ConfigMaps
    assert {verb for _, resource, verb in off if resource == "pods"} == {"list", "watch", "patch"}
    assert {verb for _, resource, verb in off if resource == "configmaps"} == {
        "get",
        "list",
        "watch",
        "create",
        "patch",
    }


def test_the_right_to_write_the_lease_is_that_on_one(helm: Helm) -> None:
    role = one(helm.template('operator.leaderElection={"leaseName":"mine"}'), "Role", "ott-ots-tunnel-operator-leader")

    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in role["rules"]] == [
        (["mine"], ["update"]),
        (None, ["get", "create"]),
    ]


def test_secrets_are_only_read_one_by_one(helm: Helm) -> None:
    rules = one(helm.template(), "ClusterRole", "ott-ots-tunnel-operator")["rules"]

    assert {verb for _, resource, verb in rights(rules) if resource in {"secrets", "*"}} == {"get", "watch"}


def test_the_rights_on_secrets_can_be_restricted_to_names(helm: Helm) -> None:
    role = one(helm.template('rbac.secretNames=["keys","other"]'), "ClusterRole", "ott-ots-tunnel-operator")

    (rule,) = (rule for rule in role["rules"] if "secrets" in rule["resources"])
    assert rule["resourceNames"] == ["keys", "other"]
    assert [rule for rule in role["rules"] if rule.get("resourceNames")] == [rule]


def test_the_operator_holds_what_the_driver_gets(helm: Helm) -> None:
    document = tunnel_object(engine__baseData="Spark")
    document["metadata"]["uid"] = "u"
    granted = spark_rights.role(TablestoreTunnel.from_body(document))["rules"]

    held = one(helm.template(), "ClusterRole", "ott-ots-tunnel-operator")["rules"]

    assert rights(granted) <= rights(held)


def test_operators_take_turns_by_a_lease(helm: Helm) -> None:
    documents = helm.template("operator.replicas=2")
    deployment = one(documents, "Deployment")

    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]["type"]) == (2, "RollingUpdate")
    assert "OTS_OPERATOR_LEASE_NAMESPACE" in environment(documents)


def test_a_release_can_have_a_lease_of_its_own(helm: Helm) -> None:
    named = helm.template('operator.leaderElection={"leaseName":"shop"}')

    assert "--lease-name=shop" in arguments(named)


def test_releases_in_one_namespace_have_different_leases(helm: Helm) -> None:
    shop, lake = (helm.template(f'fullnameOverride="{name}"') for name in ("shop", "lake"))

    assert "--lease-name=ott-ots-tunnel-operator" in arguments(helm.template())
    assert "--lease-name=shop" in arguments(shop)
    assert "--lease-name=lake" in arguments(lake)


def test_without_a_lease_there_is_one_operator_at_a_time(helm: Helm) -> None:
    documents = helm.template("operator.leaderElection.enabled=false")
    deployment = one(documents, "Deployment")

    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]["type"]) == (1, "Recreate")
    assert "OTS_OPERATOR_LEASE_NAMESPACE" not in environment(documents)
    assert "Role" not in kinds(documents)


def test_two_operators_without_a_lease_are_refused(helm: Helm) -> None:
    settings = ("--set-json", 'operator={"replicas":2,"leaderElection":{"enabled":false}}')
    done = helm.run("template", "ott", str(CHART), *settings)

    assert done.returncode != 0
    assert "operator.replicas above 1 needs operator.leaderElection.enabled" in done.stderr


@pytest.mark.parametrize("values", [None, EVERYTHING], ids=["defaults", "everything"])
def test_the_programs_understand_their_arguments(helm: Helm, values: Path | None) -> None:
    documents = helm.template(values=values, tests=True)
    for workload, command in (("Deployment", run), ("Job", check)):
        container = one(documents, workload)["spec"]["template"]["spec"]["containers"][0]
        program, name, *options = container["args"]

        assert (program, name) == ("ots-tunnel-operator", command.name)
        command.make_context(name, options)  # click refuses unknown options


def test_chart_and_package_share_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]

    assert chart["version"] == chart["appVersion"] == project["version"]


def test_the_operator_reads_its_environment(helm: Helm) -> None:
    read = {name for option in run.params for name in _names(option.envvar)}

    assert environment(helm.template()).keys() <= read


def _names(envvar: str | Sequence[str] | None) -> Sequence[str]:
    return [envvar] if isinstance(envvar, str) else envvar or []
