"""The NetworkPolicy of workers: from the chart's values to what the API server takes."""

from __future__ import annotations

import click
import pytest

from ots_tunnel_operator.__main__ import read_network
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.kube.kinds import Manifest
from ots_tunnel_operator.manifests.worker_network import network_policy
from ots_tunnel_operator.settings import WorkerNetwork
from tests.chart.conftest import CHART, Helm
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object

# Helm is built together with the local cluster's programs
pytestmark = [pytest.mark.api, pytest.mark.xdist_group("chart")]

ON = "workers.networkPolicy.enabled=true"
OPTION = "--worker-network="
HOME = {"kubernetes.io/metadata.name": "ots"}
OPERATOR = {"app.kubernetes.io/name": "ots-tunnel-operator", "app.kubernetes.io/instance": "ott"}
PROMETHEUS = {
    "namespaceSelector": {},
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
}
NAMES = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
#: A policy sees the port of the pod behind the Service.
OPENSHIFT_NAMES = {"ports": [*NAMES["ports"], {"port": 5353, "protocol": "UDP"}, {"port": 5353, "protocol": "TCP"}]}


def options(helm: Helm, *settings: str, kinds: str = "") -> list[str]:
    (deployment,) = (item for item in helm.template(*settings, kinds=kinds) if item["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [argument for argument in container["args"] if argument.startswith(OPTION)]


def policy(helm: Helm, *settings: str, kinds: str = "") -> Manifest:
    """The policy that the operator makes of the chart's option."""
    (option,) = options(helm, ON, *settings, kinds=kinds)
    command = click.Command("run")
    network = read_network(click.Context(command), click.Option(["--worker-network"]), option.removeprefix(OPTION))
    assert isinstance(network, WorkerNetwork)
    document = tunnel_object()
    document["metadata"]["uid"] = "1c6f4d32-0b53-4a0e-9c7b-6f0f5f1f6a11"
    return network_policy(TablestoreTunnel.from_body(document), network)


def test_there_is_none_unless_it_is_switched_on(helm: Helm) -> None:
    assert options(helm) == []


def test_operator_and_prometheus_may_connect_and_nobody_else(helm: Helm) -> None:
    spec = policy(helm)["spec"]

    (rule,) = spec["ingress"]
    operator = {"namespaceSelector": {"matchLabels": HOME}, "podSelector": {"matchLabels": OPERATOR}}
    assert rule == {"from": [operator, PROMETHEUS], "ports": [{"port": 8080, "protocol": "TCP"}]}
    assert spec["policyTypes"] == ["Ingress"]


def test_without_further_peers_the_operator_alone_may_connect(helm: Helm) -> None:
    (rule,) = policy(helm, "workers.networkPolicy.from=[]")["spec"]["ingress"]

    assert [peer["podSelector"]["matchLabels"] for peer in rule["from"]] == [OPERATOR]


def test_workers_may_connect_to_names_and_ports_where_that_is_limited(helm: Helm) -> None:
    extra = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    settings = (
        "workers.networkPolicy.egress.enabled=true",
        "workers.networkPolicy.egress.ports=[443,9092]",
        'workers.networkPolicy.egress.extra=[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8"}}]}]',
    )
    ports = {"ports": [{"port": 443, "protocol": "TCP"}, {"port": 9092, "protocol": "TCP"}]}

    spec = policy(helm, *settings)["spec"]
    assert (spec["policyTypes"], spec["egress"]) == (["Ingress", "Egress"], [NAMES, ports, extra])


def test_names_are_found_on_openshift_whose_name_servers_have_another_port(helm: Helm) -> None:
    kinds = "security.openshift.io/v1"
    settings = ("networkPolicy.enabled=true", "networkPolicy.egress.enabled=true")
    (of_operator,) = (item for item in helm.template(*settings, kinds=kinds) if item["kind"] == "NetworkPolicy")
    of_workers = policy(helm, "workers.networkPolicy.egress.enabled=true", kinds=kinds)

    assert of_operator["spec"]["egress"][0] == of_workers["spec"]["egress"][0] == OPENSHIFT_NAMES


def test_the_operator_connects_to_names_workers_and_the_ports_of_the_values_alone(helm: Helm) -> None:
    settings = ("networkPolicy.enabled=true", "networkPolicy.egress.enabled=true", "networkPolicy.egress.ports=[443]")
    (found,) = (item for item in helm.template(*settings) if item["kind"] == "NetworkPolicy")

    names, workers, others = found["spec"]["egress"]
    assert (names, others) == (NAMES, {"ports": [{"port": 443, "protocol": "TCP"}]})
    (peer,) = workers["to"]
    assert peer["podSelector"]["matchLabels"] == {"ots-tunnel.dev/role": "worker"}
    assert workers["ports"] == [{"port": "http", "protocol": "TCP"}]


@pytest.mark.parametrize(
    "settings", [(), ("workers.networkPolicy.from=[]", "workers.networkPolicy.egress.enabled=true")]
)
def test_the_api_server_takes_it(helm: Helm, empty_api_server: ApiServer, settings: tuple[str, ...]) -> None:
    made = policy(helm, *settings)

    empty_api_server.must("apply", "--server-side", "--validate=strict", "-f", "-", document=made)
    empty_api_server.must("delete", "networkpolicy", made["metadata"]["name"], "--ignore-not-found")


def test_a_misspelt_peer_is_refused(helm: Helm) -> None:
    done = helm.run("template", "ott", str(CHART), "--set-json", 'workers.networkPolicy.from=[{"podSelectr":{}}]')

    assert done.returncode != 0
    assert "Additional property podSelectr is not allowed" in done.stderr
