"""The autoscalers of docs/examples beside a real API server."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from ots_tunnel_operator.names import selector_text
from tests.support.kube.api_server import ROOT, ApiServer
from tests.support.metric_pages import OPERATOR
from tests.support.operator.objects import tunnel_object
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.lasts(20)]

EXAMPLES = ROOT / "docs" / "examples"
SHOP = ("-n", "shop")


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / name).read_text())
    return found


@pytest.fixture
def advised(api_server: ApiServer) -> ApiServer:
    """An API server with an object in mode Advise, which runs two workers."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    api_server.must("apply", "-f", "-", document=namespace)
    document = tunnel_object("orders-copy", autoscaling={"mode": "Advise"}, replicas=2)
    document["metadata"]["namespace"] = "shop"
    api_server.must("apply", "-f", "-", document=document)
    status = json.dumps({"status": {"replicas": 2, "selector": selector_text("orders-copy")}})
    api_server.must(*SHOP, "patch", "ott", "orders-copy", "--subresource=status", "--type=merge", "-p", status)
    return api_server


def test_the_hpa_finds_the_object_and_its_workers(advised: ApiServer) -> None:
    """Without a metrics adapter it asks for the metric and gets none: until there, everything fits."""
    advised.must("apply", "-f", str(EXAMPLES / "autoscaler-hpa.yaml"))

    def conditions() -> dict[str, tuple[str, str]]:
        found = json.loads(advised.must(*SHOP, "get", "hpa", "orders-copy", "-o", "json"))
        listed = found.get("status", {}).get("conditions") or ()
        return {item["type"]: (item["status"], item["reason"]) for item in listed}

    wait_until(lambda: "ScalingActive" in conditions(), 45, "the HPA controller looks at the object")
    assert conditions()["AbleToScale"] == ("True", "SucceededGetScale")
    assert conditions()["ScalingActive"] == ("False", "FailedGetExternalMetric")


def test_what_an_hpa_writes_is_the_number_of_the_object(advised: ApiServer) -> None:
    path = "/apis/ots-tunnel.dev/v1alpha1/namespaces/shop/tablestoretunnels/orders-copy/scale"
    scale = json.loads(advised.must("get", "--raw", path))
    assert scale["status"] == {"replicas": 2, "selector": selector_text("orders-copy")}

    advised.must(*SHOP, "scale", "ott/orders-copy", "--replicas=5")

    found = json.loads(advised.must(*SHOP, "get", "ott", "orders-copy", "-o", "json"))
    assert found["spec"]["replicas"] == 5
    assert found["spec"]["autoscaling"]["mode"] == "Advise"


@pytest.mark.parametrize("name", ["autoscaler-hpa.yaml", "autoscaler-keda.yaml"])
def test_every_metric_of_an_example_is_served(name: str) -> None:
    text = (EXAMPLES / name).read_text()

    used = set(re.findall(r"ots_tunnel_\w+", text))

    assert used
    assert used <= set(OPERATOR)


@pytest.mark.parametrize("name", ["autoscaler-hpa.yaml", "autoscaler-keda.yaml"])
def test_both_examples_scale_the_same_object(name: str) -> None:
    found = example(name)

    target = {"apiVersion": "ots-tunnel.dev/v1alpha1", "kind": "TablestoreTunnel", "name": "orders-copy"}
    assert found["spec"]["scaleTargetRef"] == target
