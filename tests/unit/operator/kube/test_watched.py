"""Reads from the copies that watches keep: what they cover, whom they ask, and when they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.kube import watched as module
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import DEPLOYMENT, POD, SECRET, TUNNEL, Kind, Manifest
from ots_tunnel_operator.kube.watched import SPARK_LABEL, Watched
from ots_tunnel_operator.kube.write_through import WriteThrough
from tests.support.kube.cluster_model import ClusterModel


def item(name: str, namespace: str = "shop", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels, "managedFields": [1]}}


def worker(name: str, of: str) -> dict[str, Any]:
    found = item(name)
    found["metadata"]["labels"] = {names.LABEL_ROLE: names.ROLE_WORKER, names.LABEL_NAME: of}
    return found | {"apiVersion": "apps/v1", "kind": "Deployment"}


@pytest.fixture
def model() -> ClusterModel:
    return ClusterModel()


@pytest.fixture
async def watched(model: ClusterModel) -> AsyncIterator[Watched]:
    found = Watched(model, listener=ignore, entropy=Random(1))
    yield found
    await found.close()


def ignore(kind: Kind, event: str, manifest: Manifest) -> None:
    pass


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_reads_of_a_kind_share_one_list_and_one_watch(model: ClusterModel, watched: Watched) -> None:
    model.put(DEPLOYMENT, worker("a", "a"))
    model.put(DEPLOYMENT, item("foreign"))

    for _ in range(5):
        assert await watched.get(DEPLOYMENT, "shop", "a") is not None
        assert await watched.get(DEPLOYMENT, "shop", "foreign") is None
        assert await watched.get(DEPLOYMENT, "other", "a") is None
    await settle()

    assert model.calls == [("list", "deployments"), ("watch", "deployments")]


async def test_pods_are_found_by_the_label_of_their_object_or_of_spark(model: ClusterModel, watched: Watched) -> None:
    for pod, of in (("p1", "a"), ("p2", "a"), ("p3", "b")):
        model.put(POD, worker(pod, of))
    driver = item("driver")
    driver["metadata"]["labels"] = {SPARK_LABEL: "a-snapshot"}
    model.put(POD, driver)

    async def found(selector: str) -> list[str]:
        return [pod["metadata"]["name"] for pod in await watched.list(POD, "shop", selector)]

    assert await found(names.selector_text("a")) == ["p1", "p2"]
    assert await found(f"{SPARK_LABEL}=a-snapshot") == ["driver"]
    assert await found(f"{names.LABEL_NAME}=a,{names.LABEL_ROLE}=else") == []


async def test_a_secret_is_watched_by_its_name_and_never_listed(model: ClusterModel, watched: Watched) -> None:
    assert await watched.get(SECRET, "shop", "keys") is None
    model.put(SECRET, item("keys"))
    await settle()

    assert await watched.get(SECRET, "shop", "keys") is not None
    assert model.calls == [("watch", "secrets"), ("get", "secrets")]


async def test_the_watch_of_a_secret_ends_when_nobody_reads_it(
    model: ClusterModel, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watched.get(SECRET, "shop", "keys")
    monkeypatch.setattr(module, "IDLE_SECONDS", -1.0)
    monkeypatch.setattr(module, "SWEEP_SECONDS", -1.0)

    await watched.get(SECRET, "shop", "other")
    await settle()
    before = len(model.calls)
    await watched.get(SECRET, "shop", "keys")

    assert ("watch", "secrets") in model.calls[before:]


async def test_beyond_a_number_of_secrets_each_one_is_read_by_a_call(
    model: ClusterModel, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SECRETS", 0)
    model.put(SECRET, item("keys"))

    assert await watched.get(SECRET, "shop", "keys") is not None
    assert model.calls == [("get", "secrets")]


async def test_an_object_is_read_only_when_every_namespace_is_known(model: ClusterModel) -> None:
    model.put(TUNNEL, item("a"))
    found = Watched(model, namespaces=("shop", "lake"), listener=ignore)

    read = await found.get(TUNNEL, "shop", "a")

    assert model.calls.count(("list", "tablestoretunnels")) == 2
    assert read is not None
    assert "managedFields" not in read["metadata"]
    await found.close()


async def test_what_was_written_is_read_at_once(model: ClusterModel, watched: Watched) -> None:
    cluster = WriteThrough(model, watched)
    await watched.get(DEPLOYMENT, "shop", "any")
    await settle()

    await cluster.create(DEPLOYMENT, worker("a", "a"))
    assert await watched.get(DEPLOYMENT, "shop", "a") is not None
    await cluster.patch(DEPLOYMENT, "shop", "a", {"spec": {"replicas": 0}})
    patched = await watched.get(DEPLOYMENT, "shop", "a")
    assert patched is not None
    assert patched["spec"] == {"replicas": 0}
    await cluster.apply(worker("a", "b"))
    assert len(await watched.list(DEPLOYMENT, "shop", f"{names.LABEL_NAME}=b")) == 1
    await cluster.try_apply(worker("a", "d"))
    assert len(await watched.list(DEPLOYMENT, "shop", f"{names.LABEL_NAME}=b")) == 1
    await cluster.replace(DEPLOYMENT, worker("a", "c"))
    assert len(await watched.list(DEPLOYMENT, "shop", f"{names.LABEL_NAME}=c")) == 1


async def test_a_version_is_known_without_the_body(model: ClusterModel, watched: Watched) -> None:
    cluster = WriteThrough(model, watched)
    assert await watched.stored_version(DEPLOYMENT, "shop", "a") == ""
    stored = await cluster.create(DEPLOYMENT, worker("a", "a"))

    assert await watched.stored_version(DEPLOYMENT, "shop", "a") == stored["metadata"]["resourceVersion"]
    assert await cluster.stored_version(DEPLOYMENT, "shop", "a") == stored["metadata"]["resourceVersion"]
    model.remove(DEPLOYMENT, "shop", "a")
    await settle()
    assert await watched.stored_version(DEPLOYMENT, "shop", "a") == ""
    assert await cluster.stored_version(DEPLOYMENT, "shop", "a") == ""


async def test_no_version_is_vouched_for_that_is_too_old(model: ClusterModel, watched: Watched) -> None:
    model.fail(KubeError(403, "Forbidden", "no"))

    with pytest.raises(KubeError, match="Forbidden"):
        await watched.stored_version(DEPLOYMENT, "shop", "a")


async def test_an_object_of_another_owner_does_not_enter_the_copy(model: ClusterModel, watched: Watched) -> None:
    cluster = WriteThrough(model, watched)
    await watched.get(DEPLOYMENT, "shop", "any")
    model.put(DEPLOYMENT, item("foreign"))

    assert await cluster.get(DEPLOYMENT, "shop", "foreign") is not None
    assert await cluster.get(DEPLOYMENT, "shop", "missing") is None
    assert await watched.get(DEPLOYMENT, "shop", "foreign") is None


async def test_the_other_calls_pass_through(model: ClusterModel, watched: Watched) -> None:
    cluster = WriteThrough(model, watched)
    selection = module.Selection(DEPLOYMENT)
    model.put(DEPLOYMENT, worker("a", "a"))

    assert len(await cluster.list(DEPLOYMENT, "shop", names.LABEL_ROLE)) == 1
    assert len((await cluster.listing(selection)).items) == 1
    assert [change.type async for change in cluster.watch(selection, "1", 0.05)][:2] == ["BOOKMARK", "ADDED"]
    await cluster.delete(DEPLOYMENT, "shop", "a")
    assert model.objects == {}
    await cluster.close()


async def test_a_watch_that_ended_by_a_defect_is_started_again(
    model: ClusterModel, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    model.fail(TypeError("surprise"))
    with pytest.raises(KubeError, match="surprise"):
        await watched.get(DEPLOYMENT, "shop", "a")
    await settle()
    model.fail(None)

    with pytest.raises(KubeError, match="surprise"):
        await watched.get(DEPLOYMENT, "shop", "a")
    assert await watched.get(DEPLOYMENT, "shop", "a") is None
    assert [vars(record)["action"] for record in caplog.records] == ["watch_ended"]


async def test_what_was_deleted_while_a_watch_had_ended_by_a_defect_is_reported(model: ClusterModel) -> None:
    """Otherwise an object that is gone would keep its tunnel from others until the operator is restarted."""
    deleted: list[str] = []

    def listen(kind: Kind, event: str, manifest: Manifest) -> None:
        if event == "DELETED":
            deleted.append(manifest["metadata"]["name"])

    found = Watched(model, listener=listen, entropy=Random(1))
    model.put(DEPLOYMENT, worker("a", "a"))
    assert await found.get(DEPLOYMENT, "shop", "a") is not None
    model.fail(TypeError("surprise"))
    await settle()
    model.lose(DEPLOYMENT, "shop", "a")
    model.fail(None)

    with pytest.raises(KubeError, match="surprise"):
        await found.get(DEPLOYMENT, "shop", "a")

    assert await found.get(DEPLOYMENT, "shop", "a") is None
    assert deleted == ["a"]
    await found.close()


async def test_a_read_after_the_end_starts_no_watch(watched: Watched) -> None:
    await watched.close()
    before = asyncio.all_tasks()

    with pytest.raises(KubeError, match="has ended with the operator"):
        await watched.get(DEPLOYMENT, "shop", "any")

    assert asyncio.all_tasks() == before
