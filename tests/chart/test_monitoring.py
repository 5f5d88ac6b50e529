"""Monitors, alerts and dashboard of the chart: where they are created, and what they select."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import yaml

from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.manifests import pod_monitor, worker_deployment, worker_document
from tests.chart.conftest import CHART, Helm
from tests.support.kube.api_server import ApiServer
from tests.support.kube.monitoring_kinds import GROUP, definition
from tests.support.operator.objects import tunnel_object

# Helm is built together with the local cluster's programs
pytestmark = pytest.mark.api

KINDS = ("ServiceMonitor", "PodMonitor", "PrometheusRule")


def rendered(helm: Helm, *settings: str) -> dict[str, dict[str, Any]]:
    """Objects by kind, as in a cluster with the Prometheus operator; ConfigMap is the dashboard."""
    sets = [part for setting in settings for part in ("--set-json", setting)]
    done = helm.run(
        "template",
        "ott",
        str(CHART),
        "--namespace",
        "ots",
        "--api-versions",
        f"{GROUP}/v1",
        "--kube-version",
        "1.34",
        *sets,
    )
    assert done.returncode == 0, done.stderr
    return {item["kind"]: item for item in yaml.safe_load_all(done.stdout) if item}


def test_without_the_kinds_of_the_prometheus_operator_there_are_none(helm: Helm) -> None:
    assert not {item["kind"] for item in helm.template()} & {*KINDS, "ConfigMap"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_created_where_its_kind_exists_unless_it_is_switched_off(helm: Helm, kind: str) -> None:
    value = kind[0].lower() + kind[1:]

    assert kind in rendered(helm)
    assert kind not in rendered(helm, f"metrics.{value}.enabled=false")
    labelled = rendered(helm, f'metrics.{value}.labels={{"release":"prometheus"}}')[kind]["metadata"]["labels"]
    assert labelled["release"] == "prometheus"


def test_the_service_monitor_selects_the_service_and_keeps_the_labels_of_objects(helm: Helm) -> None:
    objects = rendered(helm, 'metrics.serviceMonitor.interval="10s"')
    spec, service = objects["ServiceMonitor"]["spec"], objects["Service"]

    assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = spec["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert (endpoint["interval"], endpoint["honorLabels"]) == ("10s", True)


def test_without_the_service_there_is_nothing_to_scrape(helm: Helm) -> None:
    assert "ServiceMonitor" not in rendered(helm, "metrics.service.enabled=false")


def test_the_pod_monitor_selects_the_workers_and_names_their_object(helm: Helm) -> None:
    document = tunnel_object()
    document["metadata"]["uid"] = "u"
    obj = TablestoreTunnel.from_body(document)
    pods = worker_deployment.deployment(obj, worker_document.worker_config(obj, "t"), "w:1", 1)["spec"]["template"]
    spec = rendered(helm)["PodMonitor"]["spec"]

    assert spec["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in pods["spec"]["containers"][0]["ports"]}
    # a label's name has no dots, slashes or dashes in Prometheus
    label = "__meta_kubernetes_pod_label_" + names.LABEL_NAME.translate(str.maketrans("./-", "___"))
    by_name, by_job = endpoint.pop("relabelings")
    assert by_name == {"sourceLabels": [label], "targetLabel": "name"}
    assert pods["metadata"]["labels"][names.LABEL_NAME] == obj.name
    # an object's own one leads to the same metrics
    own = pod_monitor.pod_monitor(obj)["spec"]
    assert own["podMetricsEndpoints"] == [endpoint | {"relabelings": [by_name]}]
    # the Prometheus operator names the job of a PodMonitor NAMESPACE/NAME: what both scrape is one series
    assert by_job["sourceLabels"] == ["__meta_kubernetes_namespace", label]
    job = by_job["separator"].join((obj.namespace, obj.name))
    metadata = pod_monitor.pod_monitor(obj)["metadata"]
    assert by_job["replacement"].replace("$1", job) == f"{metadata['namespace']}/{metadata['name']}"
    assert by_job["targetLabel"] == "job"
    assert own["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()


def test_pod_monitors_of_objects_have_the_interval_and_the_labels_of_the_values(helm: Helm) -> None:
    labels = 'metrics.podMonitor.labels={"release":"prometheus","team":"a=b"}'
    (container,) = rendered(helm, labels, 'metrics.podMonitor.interval="15s"')["Deployment"]["spec"]["template"][
        "spec"
    ]["containers"]

    options = [argument for argument in container["args"] if argument.startswith("--pod-monitor")]
    assert options == [
        "--pod-monitor-interval=15s",
        "--pod-monitor-label=release=prometheus",
        "--pod-monitor-label=team=a=b",
    ]


def test_the_pod_monitor_looks_into_the_namespaces_served(helm: Helm) -> None:
    everywhere = rendered(helm)["PodMonitor"]["spec"]["namespaceSelector"]
    some = rendered(helm, 'watch.namespaces=["shop","lake"]')["PodMonitor"]["spec"]["namespaceSelector"]

    assert (everywhere, some) == ({"any": True}, {"matchNames": ["shop", "lake"]})


def test_the_rule_has_the_alerts_and_leads_to_the_runbook(helm: Helm) -> None:
    alerts = (CHART / "files" / "alerts.yaml").read_text()
    url = "https://wiki.example/ots"

    assert rendered(helm, "metrics.serviceMonitor.enabled=false")["PrometheusRule"]["spec"] == yaml.safe_load(alerts)
    # with the chart's own monitor, the labels of the operator's metrics are known
    alerts = alerts.replace(
        "absent(ots_tunnel_operator_leader)",
        'absent(ots_tunnel_operator_leader{namespace="ots", job="ott-ots-tunnel-operator-metrics"})',
    )
    assert rendered(helm)["PrometheusRule"]["spec"] == yaml.safe_load(alerts)
    moved = rendered(helm, f'metrics.prometheusRule.runbook="{url}"')["PrometheusRule"]["spec"]
    assert moved == yaml.safe_load(alerts.replace("docs/operations.md", url))


def test_the_rule_names_the_operator_where_it_runs(helm: Helm) -> None:
    objects = rendered(helm, 'namespaceOverride="elsewhere"')
    home, job = (objects["Service"]["metadata"][key] for key in ("namespace", "name"))

    assert f'absent(ots_tunnel_operator_leader{{namespace="{home}", job="{job}"}})' in str(objects["PrometheusRule"])


def test_the_dashboard_is_in_a_config_map_for_the_sidecar(helm: Helm) -> None:
    assert "ConfigMap" not in rendered(helm)
    found = rendered(helm, "metrics.dashboard.enabled=true")["ConfigMap"]

    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"]["ots-tunnel.json"].strip() == (CHART / "files" / "dashboard.json").read_text().strip()


@pytest.mark.parametrize("setting", ['metrics.serviceMonitor.interval="often"', "metrics.podMonitors={}"])
def test_a_wrong_value_is_refused(helm: Helm, setting: str) -> None:
    done = helm.run("template", "ott", str(CHART), "--set-json", setting)

    assert done.returncode != 0
    assert "values don't meet the specifications" in done.stderr


def test_helm_finds_the_kinds_in_a_cluster_that_has_them(empty_api_server: ApiServer, helm: Helm) -> None:
    def upgraded() -> subprocess.CompletedProcess[str]:
        return helm.run(
            *("upgrade", "--install", "monitored", str(CHART), "--namespace", "monitored", "--create-namespace"),
            *("--set", "crds.enabled=false,rbac.create=false,operator.leaderElection.enabled=false"),
            kubeconfig=empty_api_server.kubeconfig,
        )

    def there() -> set[str]:
        plurals = ",".join(f"{kind.lower()}s.{GROUP}" for kind in KINDS)
        found = empty_api_server.kubectl("-n", "monitored", "get", plurals, "-o", "name")
        return {line.partition(".")[0] for line in found.stdout.split()}

    assert upgraded().returncode == 0
    assert there() == set()
    for kind in KINDS:
        empty_api_server.must("apply", "-f", "-", document=definition(kind))
        empty_api_server.must("wait", "--for=condition=Established", f"crd/{kind.lower()}s.{GROUP}", "--timeout=30s")
    assert upgraded().returncode == 0
    assert there() == {kind.lower() for kind in KINDS}
