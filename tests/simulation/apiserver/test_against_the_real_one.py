"""The model answers as a real API server does: the same steps through the operator's client on both."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, NO_VERSION, TUNNEL, Manifest
from tests.simulation.apiserver.api import Api
from tests.simulation.apiserver.client import Fate, ModelCluster
from tests.simulation.apiserver.store import Store
from tests.simulation.apiserver.watches import Watches
from tests.simulation.apiserver.wire import Wire
from tests.support.kube.api_server import ROOT, ApiServer, missing_program, running_api_server
from tests.support.lacking import lack
from tests.support.operator.objects import tunnel_object

pytestmark = [pytest.mark.api, pytest.mark.xdist_group("model")]

NAMESPACE = "default"
CONTAINER = {"name": "worker", "image": "worker:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := missing_program("kubeone", "kubectl"):
        lack("kubernetes", reason)
    with running_api_server(tmp_path_factory.mktemp("model") / "server") as server:
        server.install_definitions(ROOT / "crds")
        yield server


def config_map(**data: str) -> Manifest:
    metadata = {"name": "settings", "namespace": NAMESPACE, "labels": {"app": "a"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(**pod: Any) -> Manifest:
    labels = {"app": "model"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], **pod}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "model", "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


async def apply_and_take_back(kube: Kube) -> list[Any]:
    """A field, a label and an entry that are applied no longer."""
    first = deployment(nodeSelector={"disk": "ssd"}, priorityClassName="")
    second = deployment()
    second["spec"]["template"]["spec"]["containers"] = [{**CONTAINER, "env": CONTAINER["env"][:1]}]
    found = [await kube.apply(first), await kube.apply(first), await kube.apply(second)]
    await kube.delete(DEPLOYMENT, NAMESPACE, "model")
    # a controller of the real server writes the status meanwhile
    return [([one for one in _owned(each) if one[0] == "Apply"], each["metadata"]["generation"]) for each in found]


async def two_writers(kube: Kube) -> list[Any]:
    """A merge patch takes a field from the one that applied it; the next apply takes it back."""
    first = await kube.apply(config_map(a="1", b="2"))
    again = await kube.apply(config_map(a="1", b="2"))
    patched = await kube.patch(CONFIG_MAP, NAMESPACE, "settings", {"data": {"a": "9", "c": "3"}})
    applied = await kube.apply(config_map(a="1"))
    await kube.delete(CONFIG_MAP, NAMESPACE, "settings")
    unchanged = first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]
    return [unchanged, _plain(patched), _owned(patched), _plain(applied), _owned(applied)]


async def versions(kube: Kube) -> list[Any]:
    """Conflicts: an existing name, an outdated version, another uid."""
    created = await kube.create(CONFIG_MAP, config_map(a="1"))
    outdated = copy.deepcopy(created)
    await kube.replace(CONFIG_MAP, created | {"data": {"a": "2"}})
    found = [
        await _refused(kube.create(CONFIG_MAP, config_map(a="1"))),
        await _refused(kube.replace(CONFIG_MAP, outdated)),
        await _refused(kube.delete(CONFIG_MAP, NAMESPACE, "settings", uid="another")),
        await _refused(kube.patch(CONFIG_MAP, NAMESPACE, "settings", {"metadata": {"resourceVersion": "1"}})),
    ]
    await kube.delete(CONFIG_MAP, NAMESPACE, "settings", uid=created["metadata"]["uid"])
    return [*found, await kube.get(CONFIG_MAP, NAMESPACE, "settings")]


async def first_applies(kube: Kube) -> list[Any]:
    """With a version that no object has, an apply creates an object and changes none."""
    found: list[Any] = []
    for kind, manifest in (CONFIG_MAP, config_map(a="1")), (DEPLOYMENT, deployment()), (TUNNEL, tunnel_object("model")):
        name = manifest["metadata"]["name"]
        new = manifest | {"metadata": manifest["metadata"] | {"namespace": NAMESPACE, "resourceVersion": NO_VERSION}}
        found.append(_owned(await kube.apply(new)))
        found.append(await _refused(kube.apply(new)))
        await kube.delete(kind, NAMESPACE, name)
    return found


async def dry_runs(kube: Kube) -> list[Any]:
    """A dry run of an apply creates and changes nothing."""
    await kube.try_apply(config_map(a="1"))
    missing = await kube.get(CONFIG_MAP, NAMESPACE, "settings")
    applied = await kube.apply(config_map(a="1"))
    await kube.try_apply(config_map(a="2"))
    found = await kube.get(CONFIG_MAP, NAMESPACE, "settings")
    assert found is not None
    await kube.delete(CONFIG_MAP, NAMESPACE, "settings")
    return [missing, _plain(found), found["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"]]


async def immutable(kube: Kube) -> list[Any]:
    """Data of an immutable ConfigMap stays, its labels may change."""
    await kube.create(CONFIG_MAP, config_map(a="1") | {"immutable": True})
    found = [
        await _refused(kube.patch(CONFIG_MAP, NAMESPACE, "settings", {"data": {"a": "2"}})),
        await _refused(kube.patch(CONFIG_MAP, NAMESPACE, "settings", {"metadata": {"labels": {"app": "b"}}})),
    ]
    await kube.delete(CONFIG_MAP, NAMESPACE, "settings")
    return found


async def status_and_finalizers(kube: Kube) -> list[Any]:
    """The status is a subresource; a finalizer holds the object; generations count the spec's changes."""
    document = tunnel_object("model")
    document["metadata"] |= {"namespace": NAMESPACE, "finalizers": ["ots-tunnel.dev/hold"]}
    seen = [await kube.create(TUNNEL, document | {"status": {"phase": "Failed"}})]
    seen.append(await kube.patch(TUNNEL, NAMESPACE, "model", {"status": {"phase": "Pending"}}, "status"))
    seen.append(await kube.patch(TUNNEL, NAMESPACE, "model", {"status": {"phase": "Failed"}, "spec": {"replicas": 3}}))
    seen.append(await kube.patch(TUNNEL, NAMESPACE, "model", {"spec": {"replicas": 2}}, "status"))
    refused = await _refused(kube.patch(TUNNEL, NAMESPACE, "model", {"spec": {"deletionPolicy": "Maybe"}}))
    await kube.delete(TUNNEL, NAMESPACE, "model")
    held = await kube.get(TUNNEL, NAMESPACE, "model")
    assert held is not None
    seen.append(held)
    await kube.patch(TUNNEL, NAMESPACE, "model", {"metadata": {"finalizers": []}})
    gone = await kube.get(TUNNEL, NAMESPACE, "model")
    leaving = [bool(one["metadata"].get("deletionTimestamp")) for one in seen]
    return [[_plain(one) for one in seen], leaving, refused, gone]


def empty_model() -> Api:
    numbers = itertools.count()
    return Api(Store(), lambda: 1_800_000_000.0, lambda: f"uid-{next(numbers)}")


@pytest.mark.parametrize(
    "steps", [apply_and_take_back, two_writers, versions, first_applies, dry_runs, immutable, status_and_finalizers]
)
async def test_same_answers(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch, steps: Any) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    real = await Kube.connect()
    try:
        expected = await steps(real)
    finally:
        await real.close()
    assert await steps(ModelCluster(empty_model())) == expected
    api = empty_model()
    watches = Watches(api.store, lambda: 0.0, lambda: 300.0)
    assert await steps(Wire(api, watches, lambda request: Fate()).client()) == expected


async def _refused(call: Any) -> tuple[int, str] | None:
    try:
        await call
    except KubeError as error:
        return error.status, error.reason
    return None


def _plain(manifest: Manifest) -> Manifest:
    """An object without what differs from run to run."""
    names = ("labels", "generation", "finalizers")
    metadata = {name: manifest["metadata"].get(name) for name in names}
    return {"metadata": metadata} | {key: manifest.get(key) for key in ("spec", "status", "data")}


def _owned(manifest: Manifest) -> list[Any]:
    entries = manifest["metadata"]["managedFields"]
    return sorted(((entry["operation"], entry["fieldsV1"]) for entry in entries), key=str)
