"""What others have created stays theirs: the operator neither deletes nor overwrites it (docs/architecture.md 3.2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ots_emulator import Emulator
from ots_emulator.server.faults import FaultRule
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import Checkpoint, TunnelId, TunnelType
from ots_tunnel.transport.aio import AioTransport
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, DEPLOYMENT, TUNNEL, Manifest
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.runtime import Runtime
from tests.operator.scenes.model_scene import ANY_VERSION, COPY, NAME, open_model_scene
from tests.operator.scenes.pass_scene import KEYS, SETTINGS, fill, table_admin

pytestmark = pytest.mark.timeout(120)

REFUSED = "OTSNoPermissionAccess"


async def create_by_hand(emulator: Emulator, name: str = NAME) -> None:
    """Create a tunnel as somebody who has more rights than the operator."""
    client = TunnelClient(emulator.endpoint, "demo", lambda: KEYS, AioTransport(emulator.endpoint))
    await client.create_tunnel("flights", name, TunnelType.BaseAndStream)
    await client.close()


async def test_a_tunnel_that_was_created_after_a_refusal_is_not_deleted() -> None:
    async with open_model_scene() as scene:
        scene.emulator.add_fault(FaultRule(operation="CreateTunnel", code=REFUSED))
        await scene.create(deletionPolicy="Delete", replicas=0)
        await scene.steps(4)
        assert await scene.reason("TunnelReady") == "AccessDenied"
        assert not (await scene.status())["tunnel"]
        scene.emulator.clear_faults()
        await create_by_hand(scene.emulator)

        await scene.steps(4)
        assert (await scene.status())["tunnel"]["createdByOperator"] is False
        await scene.delete()

        assert scene.tunnels() == [NAME]


async def test_a_table_that_was_filled_after_a_refusal_is_not_overwritten() -> None:
    async with open_model_scene() as scene:
        scene.emulator.add_fault(FaultRule(operation="CreateTable", code=REFUSED))
        await scene.create()
        await scene.steps(3)
        assert await scene.reason("SinkReady") == "AccessDenied"
        scene.emulator.clear_faults()
        fill(scene.emulator, COPY, rows=3, deviation_seconds=ANY_VERSION)

        await scene.steps(6)

        assert await scene.reason("SinkReady") == "DestinationNotEmpty"
        assert scene.names("Deployment") == []


@pytest.mark.parametrize("operation", ["CreateTunnel", "CreateTable"])
async def test_what_a_lost_answer_has_created_is_ours(operation: str) -> None:
    async with open_model_scene() as scene:
        scene.emulator.add_fault(FaultRule(operation=operation, count=1, drop_response=True))
        await scene.create(deletionPolicy="Delete", replicas=0)

        await scene.until(lambda: bool(scene.names("Deployment")))

        status = await scene.status()
        assert (status["tunnel"]["createdByOperator"], status["destination"]["createdByOperator"]) == (True, True)
        await scene.delete()
        assert scene.tunnels() == []


async def test_a_tunnel_that_appeared_before_the_first_call_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    create = TunnelClient.create_tunnel

    async def be_slower(client: TunnelClient, *values: Any, **options: Any) -> Any:
        monkeypatch.setattr(TunnelClient, "create_tunnel", create)
        await create(client, *values)
        return await create(client, *values, **options)

    async with open_model_scene() as scene:
        await scene.create(deletionPolicy="Delete", replicas=0)
        monkeypatch.setattr(TunnelClient, "create_tunnel", be_slower)

        await scene.until(lambda: bool(scene.names("Deployment")))

        assert (await scene.status())["tunnel"]["createdByOperator"] is False


async def test_a_refused_intent_is_taken_back_although_the_object_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    create = TunnelClient.create_tunnel
    async with open_model_scene() as scene:

        async def edit_first(client: TunnelClient, *values: Any, **options: Any) -> Any:
            monkeypatch.setattr(TunnelClient, "create_tunnel", create)
            await scene.edit({"replicas": 2})
            return await create(client, *values, **options)

        scene.emulator.add_fault(FaultRule(operation="CreateTunnel", code=REFUSED))
        await scene.create(replicas=0)
        monkeypatch.setattr(TunnelClient, "create_tunnel", edit_first)
        await scene.steps(2)

        assert await scene.reason("TunnelReady") == "AccessDenied"
        assert not (await scene.status())["tunnel"]


@pytest.mark.parametrize("has_workers", [False, True])
async def test_a_full_table_at_another_endpoint_is_refused(has_workers: bool) -> None:
    delay = 0.0 if has_workers else 30.0
    async with open_model_scene(init_delay=delay) as scene:
        with Emulator() as other:
            fill(other, COPY, rows=3, deviation_seconds=ANY_VERSION)
            await scene.create()
            await (scene.until(lambda: bool(scene.names("Deployment"))) if has_workers else scene.steps(6))

            await scene.edit({"sink": {"tablestore": {"endpoint": other.endpoint}}})
            await scene.steps(4)

            assert await scene.reason("SinkReady") == "DestinationNotEmpty"
            deployments = [found for key, found in scene.store.objects.items() if key[0] == "Deployment"]
            assert [found["spec"]["replicas"] for found in deployments] == ([0] if has_workers else [])


@pytest.mark.parametrize("earlier", [False, True], ids=["recorded", "by an earlier release"])
async def test_a_table_that_is_dropped_and_created_again_between_two_looks_is_told(earlier: bool) -> None:
    async with open_model_scene() as scene:
        await scene.create()
        await scene.until(lambda: bool(scene.names("Deployment")))
        before = (await scene.status())["destination"]["createdTime"]
        if earlier:
            await scene.kube.patch(
                TUNNEL, "default", NAME, {"status": {"destination": {"createdTime": None}}}, "status"
            )
            await scene.steps(1)
            assert (await scene.status())["destination"]["createdTime"] == before
        await consume(scene.emulator, (await scene.status())["tunnel"]["id"])
        admin = table_admin(scene.emulator)
        admin.delete(COPY)
        fill(scene.emulator, COPY, rows=1, deviation_seconds=ANY_VERSION)
        await scene.steps(1)
        # the last look is younger than Settings.look_seconds
        assert await scene.reason("SinkReady") == "SinkAvailable"

        (cache,) = scene.caches.values()
        cache.sink.look_time = 0.0
        await scene.steps(2)

        assert await scene.reason("SinkReady") == "DestinationBehindTunnel"
        (workers,) = (found for key, found in scene.store.objects.items() if key[0] == "Deployment")
        assert workers["spec"]["replicas"] == 0


async def consume(emulator: Emulator, tunnel: TunnelId) -> None:
    """Read and checkpoint the first page of a channel, as a worker does."""
    client = TunnelClient(emulator.endpoint, "demo", lambda: KEYS, AioTransport(emulator.endpoint))
    worker = await client.connect(tunnel, 30, "worker")
    (channel,) = await client.heartbeat(tunnel, worker, ())
    stored = await client.get_checkpoint(tunnel, worker, channel.channel_id)
    page = await client.read_records(tunnel, worker, channel.channel_id, stored.token)
    moved = Checkpoint(page.next_token, stored.sequence_number + 1)
    await client.checkpoint(tunnel, worker, channel.channel_id, moved)
    await client.close()


async def test_a_child_with_our_labels_and_without_our_owner_reference_is_not_ours() -> None:
    async with open_model_scene(init_delay=0.0) as scene:
        selector = names.worker_selector(NAME)
        template = {"metadata": {"labels": selector}, "spec": {"containers": [{"name": "worker", "image": "theirs:1"}]}}
        metadata = {"name": NAME, "namespace": "default", "labels": selector}
        theirs = {
            "metadata": metadata,
            "spec": {"replicas": 3, "selector": {"matchLabels": selector}, "template": template},
        }
        await scene.kube.create(DEPLOYMENT, {"apiVersion": "apps/v1", "kind": "Deployment"} | theirs)
        await scene.create(replicas=0)
        await scene.steps(12)

        found = await scene.kube.get(DEPLOYMENT, "default", NAME)
        assert found is not None
        assert found["spec"]["replicas"] == 3
        assert not found["metadata"].get("ownerReferences")
        assert await scene.reason("Ready") == "NameConflict"


async def test_a_child_that_another_client_creates_right_before_the_first_apply_is_spared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_model_scene(init_delay=0.0) as scene:
        apply, name = scene.kube.apply, names.config_name(NAME)
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}

        async def be_slower(manifest: Manifest) -> Manifest:
            if manifest["kind"] == "ConfigMap" and name not in scene.names("ConfigMap"):
                await scene.kube.create(CONFIG_MAP, document | {"data": {"theirs": "1"}})
            return await apply(manifest)

        monkeypatch.setattr(scene.kube, "apply", be_slower)
        await scene.create(replicas=0)
        await scene.until(lambda: name in scene.names("ConfigMap"))

        found = await scene.kube.get(CONFIG_MAP, "default", name)
        assert found is not None
        assert found["data"] == {"theirs": "1"}
        assert not found["metadata"].get("ownerReferences")
        assert await scene.reason("Ready") == "NameConflict"


async def test_a_leader_that_lost_its_lease_creates_no_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stood still between the intent and the call; meanwhile another one has deleted and released the object."""
    create, is_held = TunnelClient.create_tunnel, True
    frozen, goes_on = asyncio.Event(), asyncio.Event()

    async def stand_still(client: TunnelClient, *values: Any, **options: Any) -> Any:
        frozen.set()
        await goes_on.wait()
        return await create(client, *values, **options)

    async with open_model_scene() as scene:
        monkeypatch.setattr(TunnelClient, "create_tunnel", stand_still)
        leader = Runtime(SETTINGS, OperatorMetrics(), may_write=lambda: is_held)
        await leader.open(scene.kube, watch=False)
        await scene.create(deletionPolicy="Retain", replicas=0)
        uid = (await scene.object())["metadata"]["uid"]
        cache = leader.cache(uid, "default", NAME)
        a_pass = asyncio.create_task(leader.reconciler(lambda of: None).step("default", NAME, cache))
        await frozen.wait()
        is_held = False
        await scene.delete()
        goes_on.set()
        await a_pass
        await leader.close()

        assert scene.tunnels() == []
