"""An operator that is newer than its CRD, on a real API server: what is dropped is told, not written again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.operator.scenes.pass_scene import PassScene, table_admin
from tests.support.audit import AuditLog, Write
from tests.support.kube.api_server import ROOT
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.api, pytest.mark.timeout(180)]

NAME = "flights-copy"
CRD = ROOT / "crds" / "ots-tunnel.dev_tablestoretunnels.yaml"
#: Values for the fields that an older CRD lacks.
SAMPLE = {"verdict": {"reason": "Sample"}, "destination": {"endpoint": "e", "instance": "i", "table": "t"}}


@pytest.fixture
def scene(flights_scene: PassScene) -> PassScene:
    flights_scene.secret()
    flights_scene.apply(replicas=1)
    return flights_scene


@contextmanager
def older_crd(scene: PassScene, folder: Path, *fields: str) -> Iterator[None]:
    """Serve a CRD whose status lacks some fields, as paths with dots, until the block ends."""
    document = yaml.safe_load(CRD.read_text())
    (version,) = document["spec"]["versions"]
    for field in fields:
        *parents, last = field.split(".")
        properties = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        for parent in parents:
            properties = properties[parent]["properties"]
        del properties[last]
    older = folder / "older.yaml"
    older.write_text(yaml.safe_dump(document))
    _serve(scene, older, fields, present=False)
    try:
        yield
    finally:
        _serve(scene, CRD, fields, present=True)


def _serve(scene: PassScene, definition: Path, fields: tuple[str, ...], *, present: bool) -> None:
    """Apply a definition, and wait until the API server drops the fields, or does not."""
    scene.api.install_definitions(definition)
    wait_until(lambda: _are_kept(scene, fields) == present, 30, "the schema is in use")


def _are_kept(scene: PassScene, fields: tuple[str, ...]) -> bool:
    change = json.dumps({"status": {"phase": "Preparing", **SAMPLE}})
    arguments = ("patch", "ott", NAME, "--subresource=status", "--dry-run=server", "--type=merge", "-p", change)
    answer = json.loads(scene.api.must("-n", scene.namespace, *arguments, "-o", "json"))
    return all(_has(answer["status"], field.split(".")) for field in fields)


def _has(found: dict[str, Any], path: list[str]) -> bool:
    return path[0] in found and (len(path) == 1 or _has(found[path[0]], path[1:]))


def told(scene: PassScene) -> list[str]:
    found = json.loads(scene.api.must("-n", scene.namespace, "get", "events", "-o", "json"))["items"]
    return [item["message"] for item in found if item["reason"] == "CrdOutdated"]


async def writes_of(scene: PassScene, passes: int) -> list[Write]:
    log = AuditLog(scene.api.kubeconfig.parent / "audit.log", (scene.namespace,))
    for _ in range(passes):
        await scene.step()
    return [write for write in log.writes() if write.resource != "events"]


async def test_a_field_that_the_crd_lacks_is_written_once_and_told_once(scene: PassScene, tmp_path: Path) -> None:
    with older_crd(scene, tmp_path, "verdict"):
        await scene.running()
        admin = table_admin(scene.emulator)
        admin.delete("flights")
        admin.close()
        for cache in scene.caches.values():
            cache.source.table = None
        await scene.until(lambda: scene.condition("Stalled")[:2] == ("True", "TunnelNotFound"))
        await scene.step()

        written = await writes_of(scene, 5)

        assert "verdict" not in scene.status()
        assert written == []
        (message,) = told(scene)
        assert "status.verdict" in message
        assert "CRD" in message
    # with the CRD of this release, the next write stores it
    scene.api.must("-n", scene.namespace, "patch", "ott", NAME, "--type=merge", "-p", '{"spec": {"replicas": 2}}')
    await scene.step()
    assert scene.status()["verdict"]["reason"] == "TunnelNotFound"


async def test_nothing_is_created_on_a_record_that_the_crd_drops(scene: PassScene, tmp_path: Path) -> None:
    with older_crd(scene, tmp_path, "destination.endpoint", "destination.instance", "destination.table"):
        for _ in range(3):
            await scene.step()

        assert scene.stored() == {"tables": ["flights"], "tunnels": []}
        status, reason, message = scene.condition("Stalled")
        assert (status, reason) == ("True", "CrdOutdated")
        assert "status.destination.endpoint" in message
        assert len(await writes_of(scene, 1)) <= 1
    await scene.running()
