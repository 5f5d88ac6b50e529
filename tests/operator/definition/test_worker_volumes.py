"""The workers' Deployment as the API server takes it, where a podTemplate gives a volume another source."""

from __future__ import annotations

import pytest

from ots_tunnel_operator.manifests.worker_deployment import deployment
from ots_tunnel_operator.manifests.worker_document import worker_config
from tests.operator.scenes.pass_scene import PassScene
from tests.support.operator.worlds import resource

pytestmark = [pytest.mark.api, pytest.mark.timeout(180)]

BUCKET = {"files": {"url": "s3://shop/orders", "credentials": {"secretRef": {"name": "keys"}}}}
CLAIM = {"name": "spool", "persistentVolumeClaim": {"claimName": "spool"}}


async def test_a_claim_takes_the_place_of_the_empty_dir(flights_scene: PassScene) -> None:
    obj = resource(sink=BUCKET, workers={"podTemplate": {"spec": {"volumes": [CLAIM]}}}).object
    manifest = deployment(obj, worker_config(obj, "t"), "worker:1", 1)
    manifest["metadata"] |= {"namespace": flights_scene.namespace}

    flights_scene.api.must("create", "--dry-run=server", "--validate=strict", "-f", "-", document=manifest)

    assert CLAIM in manifest["spec"]["template"]["spec"]["volumes"]
