"""Objects that were stored with the CRD of the last release: served, read and changed with the present one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.report.conditions import OF_AUTOSCALING
from tests.operator.scenes.pass_scene import PassScene
from tests.support.kube.api_server import ROOT
from tests.support.operator.released import DEFINITION, OBJECTS, released_object
from tests.support.operator.statuses import complete_status
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(180), pytest.mark.lasts(15)]

PRESENT = ROOT / "crds" / "ots-tunnel.dev_tablestoretunnels.yaml"


def released_status() -> dict[str, Any]:
    """A whole status of an object without autoscaling, which the last release did not have."""
    status = complete_status().dump()
    conditions = [found for found in status["conditions"] if found["type"] not in OF_AUTOSCALING]
    return {**status, "conditions": conditions}


@contextmanager
def released_crd(scene: PassScene) -> Iterator[None]:
    """Serve the CRD of the last release, and the present one behind the block."""
    _serve(scene, is_released=True)
    try:
        yield
    finally:
        _serve(scene, is_released=False)


def _serve(scene: PassScene, *, is_released: bool) -> None:
    scene.api.install_definitions(DEFINITION if is_released else PRESENT)
    # the release has no such field
    sample = scene.document("sample", source__rateLimit={})
    create = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    wait_until(
        lambda: (scene.api.kubectl(*create, document=sample).returncode != 0) == is_released, 30, "the schema is in use"
    )


async def test_objects_of_the_last_release_are_kept_and_may_be_changed(flights_scene: PassScene) -> None:
    scene = flights_scene
    api, namespace = scene.api, scene.namespace
    with released_crd(scene):
        for name in OBJECTS:
            api.must("create", "-f", "-", document=released_object(name, namespace))
            status = json.dumps({"status": released_status()})
            patch = ("patch", "ott", name, "--subresource=status", "--type=merge", "-p", status)
            api.must("-n", namespace, *patch)
        before = {name: scene.read("ott", name) for name in OBJECTS}

    for name in OBJECTS:
        found = scene.read("ott", name)
        assert found["spec"].items() >= before[name]["spec"].items(), name
        assert found["status"] == before[name]["status"], name
        assert _spec(found) == _spec(before[name])
        # every writer: the scale subresource, an apply of the same document, the operator's finalizer and status
        api.must("-n", namespace, "scale", f"ott/{name}", "--replicas=7")
        api.must("apply", "--server-side", "--force-conflicts", "-f", "-", document=released_object(name, namespace))
        for change in ({"metadata": {"finalizers": ["ots-tunnel.dev/test"]}}, {"metadata": {"finalizers": []}}):
            api.must("-n", namespace, "patch", "ott", name, "--type=merge", "-p", json.dumps(change))
        status = json.dumps({"status": {"phase": "Failed"}})
        api.must("-n", namespace, "patch", "ott", name, "--subresource=status", "--type=merge", "-p", status)


def _spec(document: dict[str, Any]) -> Any:
    return TablestoreTunnel.from_body(document).spec


async def test_workers_of_an_object_of_the_last_release_are_not_restarted(flights_scene: PassScene) -> None:
    scene = flights_scene
    scene.secret()
    with released_crd(scene):
        scene.apply()
        await scene.running()
        before = scene.read("deployment", "flights-copy")["spec"]["template"]

    await scene.step()
    # a change that rolls no pod writes the object, and with it the defaults of the present CRD
    scene.api.must("-n", scene.namespace, "scale", "ott/flights-copy", "--replicas=2")
    await scene.step()

    assert scene.read("deployment", "flights-copy")["spec"]["replicas"] == 2
    assert scene.read("deployment", "flights-copy")["spec"]["template"] == before
