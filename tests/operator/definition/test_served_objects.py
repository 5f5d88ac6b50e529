"""What a real API server makes of an object: defaults, columns, subresources and status."""

from __future__ import annotations

import json

import pytest

from ots_tunnel_operator.api.object import TablestoreTunnel
from tests.operator.definition.admission import accepted
from tests.support.kube.api_server import ApiServer
from tests.support.operator.objects import tunnel_object
from tests.support.operator.statuses import complete_status

pytestmark = pytest.mark.api


def test_defaults_are_those_of_the_models(api_server: ApiServer) -> None:
    document = tunnel_object(workers={})

    served = TablestoreTunnel.from_body(accepted(api_server, document))

    assert served.spec == TablestoreTunnel.from_body(document).spec


def test_scale_and_status_are_subresources(api_server: ApiServer) -> None:
    api_server.must("apply", "--server-side", "-f", "-", document=tunnel_object("scaled"))
    try:
        api_server.must("scale", "ott", "scaled", "--replicas=4")
        status = {"replicas": 3, "selector": "ots-tunnel.dev/name=scaled", "phase": "Streaming"}
        api_server.must(
            "patch", "ott", "scaled", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
        )
        scale = json.loads(api_server.must("get", "ott", "scaled", "--subresource=scale", "-o", "json"))
        wide = api_server.must("get", "ott", "scaled", "-o", "wide").splitlines()
    finally:
        api_server.must("delete", "ott", "scaled")

    assert scale["spec"]["replicas"] == 4
    assert scale["status"] == {"replicas": 3, "selector": "ots-tunnel.dev/name=scaled"}
    columns = "NAME READY PHASE WORKERS DESIRED CHANNELS UNOWNED LAG(S) BASE(%) ROWS/S AGE "
    columns += "TABLE STAGE TUNNEL-ID REASON OBSERVED"
    assert " ".join(wide[0].split()) == columns


def test_a_complete_status_survives(api_server: ApiServer) -> None:
    status = complete_status().dump()
    api_server.must("apply", "--server-side", "-f", "-", document=tunnel_object("reported"))
    try:
        patch = json.dumps({"status": status})
        api_server.must("patch", "ott", "reported", "--subresource=status", "--type=merge", "-p", patch)
        kept = json.loads(api_server.must("get", "ott", "reported", "-o", "json"))["status"]
    finally:
        api_server.must("delete", "ott", "reported")

    assert kept == status
