"""An object whose podTemplate is nested as deeply as the API server takes it stops neither the operator nor others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.operator.scenes.operator_process import OperatorProcess
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(300), pytest.mark.lasts(10)]

#: Longest time of one step of the operator in seconds.
PATIENCE = 120.0
OBJECTS = "/apis/ots-tunnel.dev/v1alpha1/namespaces/{}/tablestoretunnels"


@pytest.mark.parametrize("levels", [600, 1500])
def test_one_object_that_is_nested_deeply_stops_nobody(api_server: ApiServer, tmp_path: Path, levels: int) -> None:
    api, namespace = api_server, f"nested-{levels}"
    api.must("create", "namespace", namespace)
    file, deep = tmp_path / "deep.json", '{"a":' * levels + "{}" + "}" * levels
    document = tunnel_object("deep", workers={"podTemplate": {"spec": "DEEP"}})
    document["metadata"]["namespace"] = namespace
    file.write_text(json.dumps(document).replace('"DEEP"', deep))
    api.must("create", "--raw", OBJECTS.format(namespace), "-f", str(file))
    plain = tunnel_object("plain", source__tunnel__name="other")
    plain["metadata"]["namespace"] = namespace
    api.must("create", "-f", "-", document=plain)

    def reason(name: str) -> str:
        path = '{.status.conditions[?(@.type=="Ready")].reason}'
        return api.must("-n", namespace, "get", "ott", name, "-o", f"jsonpath={path}")

    operator = OperatorProcess(api.kubeconfig, namespace, tmp_path / "operator.log", "--poll-seconds", "0.5")
    operator.start()
    try:
        for name, wanted in {"plain": "SecretNotFound", "deep": "InvalidSpec"}.items():
            wait_until(
                lambda name=name, wanted=wanted: reason(name) == wanted, PATIENCE, f"{name} says what is wrong with it"
            )
    finally:
        assert operator.stop() == 0, (tmp_path / "operator.log").read_text()[-4000:]
