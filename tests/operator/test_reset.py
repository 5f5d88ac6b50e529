"""Resets on the model of the API server and the emulator: their end, and that with a crash at each of their writes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.model import Action, Stage, TunnelType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import RowWrite
from ots_tunnel_operator import names
from ots_tunnel_operator.kube.kinds import DEPLOYMENT, TUNNEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.times import timestamp
from tests.operator.scenes.model_scene import COPY, NAME, ModelScene, open_model_scene
from tests.operator.scenes.pass_scene import KEYS, table_admin

#: Most writes of one reset.
WRITES = 30
HOUR_AGO = timestamp(time.time() - 3600)
STREAM = {"source__tunnel__type": "Stream"}


class ResetScene:
    """An object whose operator may die at any write."""

    def __init__(self, scene: ModelScene) -> None:
        self.scene = scene

    async def begin(self, **changes: Any) -> str:
        """Create the object and run it until its workers are wanted; the id of its tunnel."""
        await self.scene.create(**changes)
        await self.scene.until(lambda: NAME in self.scene.names("Deployment"))
        await self.rest()
        return str((await self.scene.status())["tunnel"]["id"])

    async def suspend(self) -> None:
        """Suspend it, and let the Deployment follow."""
        await self.scene.edit({"suspend": True})
        await self.scene.steps()
        await self.rest()

    async def rest(self) -> None:
        """Let the Deployment's controller see what is wanted; no pod ever starts here."""
        found = await self.scene.kube.get(DEPLOYMENT, "default", NAME)
        assert found is not None
        seen = {"observedGeneration": found["metadata"]["generation"]}
        await self.scene.kube.patch(DEPLOYMENT, "default", NAME, {"status": seen}, "status")
        await self.scene.steps()

    async def ask(self, form: str, token: str = "t1", **more: Any) -> None:
        """Write the annotation."""
        value = json.dumps({"token": token, "form": form, **more})
        await self.annotate(value)

    async def ask_and_suspend(self, form: str, **more: Any) -> None:
        """Write annotation and spec.suspend at once, as GitOps does."""
        annotations = {names.ANNOTATION_RESET: json.dumps({"token": "t1", "form": form, **more})}
        change = {"metadata": {"annotations": annotations}, "spec": {"suspend": True}}
        await self.scene.kube.patch(TUNNEL, "default", NAME, change)

    async def annotate(self, value: str | None) -> None:
        """Write the annotation as a text."""
        change = {"metadata": {"annotations": {names.ANNOTATION_RESET: value}}}
        await self.scene.kube.patch(TUNNEL, "default", NAME, change)

    async def reset(self) -> dict[str, Any]:
        """status.reset."""
        return dict((await self.scene.status()).get("reset") or {})

    async def drop_tunnel(self) -> None:
        """Somebody deletes the tunnel."""
        client = TunnelClient(self.scene.emulator.endpoint, "demo", lambda: KEYS)
        await client.delete_tunnel("flights", NAME)
        await client.close()

    async def create_expired_tunnel(self) -> str:
        """Somebody creates a tunnel of the name, and it expires; its id."""
        client = TunnelClient(self.scene.emulator.endpoint, "demo", lambda: KEYS)
        created = await client.create_tunnel("flights", NAME, TunnelType.BaseAndStream)
        await client.close()
        self.scene.emulator.call("expire_tunnel", "demo", created)
        return str(created)

    def tunnels(self) -> list[dict[str, Any]]:
        """The tunnels of the service."""
        (instance,) = self.scene.emulator.call("state")["instances"]
        return list(instance["tunnels"])

    def others(self, former: str) -> list[dict[str, Any]]:
        """The tunnels but the former one."""
        return [tunnel for tunnel in self.tunnels() if tunnel["id"] != former]


@asynccontextmanager
async def opened() -> AsyncIterator[ResetScene]:
    async with open_model_scene() as scene:
        yield ResetScene(scene)


@dataclass
class Death:
    """The end of the operator at one of its writes, to the API server or to the service."""

    left: int
    before: bool
    writes: list[str] = field(default_factory=list)

    async def at(self, name: str, call: Any) -> Any:
        """Make a call, unless the operator dies before it, or before it hears of it."""
        self.writes.append(name)
        self.left -= 1
        if self.left == 0 and self.before:
            call.close()  # it is never made
            raise asyncio.CancelledError
        answer = await call
        if self.left == 0:
            raise asyncio.CancelledError
        return answer


def mortal(scene: ModelScene, monkeypatch: pytest.MonkeyPatch, death: Death) -> None:
    """Let every write of the operator pass by a death."""
    for name in ("patch", "apply", "delete", "create"):
        written = getattr(scene.kube, name)

        def write(*arguments: Any, _written: Any = written, _name: str = name, **named: Any) -> Any:
            return death.at(_name, _written(*arguments, **named))

        monkeypatch.setattr(scene.kube, name, write)
    for name in ("create_tunnel", "delete_tunnel"):
        called = getattr(TunnelClient, name)

        def call(*arguments: Any, _called: Any = called, _name: str = name, **named: Any) -> Any:
            return death.at(_name, _called(*arguments, **named))

        monkeypatch.setattr(TunnelClient, name, call)


async def pass_or_die(scene: ModelScene, cache: LoopCache) -> LoopCache:
    """One pass; the cache of the next operator where this one dies."""
    try:
        await scene.runtime.reconciler(lambda of: None).step("default", NAME, cache)
    except asyncio.CancelledError:
        await cache.close()
        return LoopCache(cache.uid)
    return cache


async def finished(found: ResetScene, monkeypatch: pytest.MonkeyPatch, death: Death) -> dict[str, Any]:
    """Run passes until the reset is done, with one death; what is there then."""
    body = await found.scene.object()
    token = json.loads(body["metadata"]["annotations"][names.ANNOTATION_RESET])["token"]
    cache = LoopCache(body["metadata"]["uid"])
    with monkeypatch.context() as patched:
        mortal(found.scene, patched, death)
        for _ in range(12):
            cache = await pass_or_die(found.scene, cache)
            told = await found.reset()
            if (told.get("token"), told.get("state")) == (token, "Done"):
                break
    await cache.close()
    status = await found.scene.status()
    (tunnel,) = found.tunnels()
    return {
        "state": status["reset"]["state"],
        "recorded": status["tunnel"]["id"] == status["reset"]["tunnelId"] == tunnel["id"],
        "ours": status["tunnel"]["createdByOperator"],
        "starts": status["tunnel"].get("startFrom"),
        "former": status["reset"]["formerTunnelId"],
        "lost": (status.get("lost") or {}).get("what"),
        "verdict": status.get("verdict"),
    }


FORMS = {
    "new base": ({}, {"form": "NewBase", "existingTunnel": "Delete"}, None, None),
    "rewind": (STREAM, {"form": "Rewind", "startTime": HOUR_AGO, "existingTunnel": "Delete"}, "Timestamp", None),
    "new tunnel": (STREAM, {"form": "NewTunnel", "existingTunnel": "Delete"}, None, "Changes"),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("form", FORMS)
async def test_killed_at_every_write_it_ends_in_one_new_tunnel(
    form: str, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, request, starts, lost = FORMS[form]
    async with opened() as found:
        former = await found.begin(**spec)
        await found.suspend()
        number = 0
        while True:
            number += 1
            await found.ask(token=f"t{number}", **request)
            death = Death(number, before)
            end = await finished(found, monkeypatch, death)

            assert end == {
                "state": "Done",
                "recorded": True,
                "ours": True,
                "starts": starts,
                "former": former,
                "lost": lost,
                "verdict": None,
            }, (number, death.writes)
            former = (await found.reset())["tunnelId"]
            if death.left > 0:
                break
        assert 5 < number < WRITES


async def test_the_same_annotation_resets_once() -> None:
    async with opened() as found:
        former = await found.begin()
        await found.suspend()
        await found.ask("NewBase", existingTunnel="Delete")
        await found.scene.until(lambda: [tunnel["stage"] for tunnel in found.others(former)] == [Stage.BASE])
        await found.scene.steps(3)
        (first,) = found.tunnels()
        version = (await found.scene.object())["metadata"]["resourceVersion"]

        await found.ask("NewBase", existingTunnel="Delete")
        await found.scene.steps(5)

        assert [tunnel["id"] for tunnel in found.tunnels()] == [first["id"]]
        assert (await found.scene.object())["metadata"]["resourceVersion"] == version
        assert {"ResetStarted", "ResetDone"} <= found.scene.events().keys()


async def test_an_annotation_that_gitops_puts_back_resets_nothing() -> None:
    async with opened() as found:
        await found.begin()
        await found.suspend()
        for token in ("of-git", "by-hand"):
            former = (await found.scene.status())["tunnel"]["id"]
            await found.ask("NewBase", token, existingTunnel="Delete")
            await found.scene.until(lambda of=former: [tunnel["stage"] for tunnel in found.others(of)] == [Stage.BASE])
            await found.scene.steps(3)
        (last,) = found.tunnels()
        version = (await found.scene.object())["metadata"]["resourceVersion"]

        await found.ask("NewBase", "of-git", existingTunnel="Delete")
        await found.scene.steps(4)

        assert [tunnel["id"] for tunnel in found.tunnels()] == [last["id"]]
        assert (await found.scene.object())["metadata"]["resourceVersion"] == str(int(version) + 1)


async def test_a_destination_that_was_empty_once_is_looked_at_again() -> None:
    """Its description is kept for a while, but not that it was empty before the workers wrote."""
    async with opened() as found:
        former = await found.begin()
        await found.scene.steps(2)
        admin = table_admin(found.scene.emulator)
        admin.write(COPY, [RowWrite(Action.PUT, (("pk", "k1"),), (Column("a", 1),))])
        admin.close()
        await found.suspend()
        await found.ask("NewBase", existingTunnel="Delete")
        await found.scene.until(lambda: bool(found.others(former)))
        await found.scene.steps(3)

        assert (await found.reset())["state"] == "Done"
        assert (await found.scene.status())["lost"]["what"] == "Deletions"


async def test_a_destination_that_was_dropped_is_created_before_a_worker_starts() -> None:
    """Its description is kept for a while, but not once a look has missed it."""
    async with opened() as found:
        former = await found.begin()
        await found.suspend()
        admin = table_admin(found.scene.emulator)
        admin.delete(COPY)
        await found.ask("NewBase", existingTunnel="Delete")
        await found.scene.until(lambda: bool(found.others(former)))
        await found.scene.steps(3)
        assert (await found.reset())["state"] == "Done"

        await found.scene.edit({"suspend": False})
        await found.scene.until(
            lambda: found.scene.store.objects["Deployment", "default", NAME]["spec"]["replicas"] == 1
        )
        tables = admin.list()
        admin.close()

        assert COPY in tables


async def test_the_spec_stays_and_the_object_goes_on_with_its_next_tunnel() -> None:
    async with opened() as found:
        former = await found.begin(**STREAM)
        await found.suspend()
        spec = (await found.scene.object())["spec"]
        await found.ask("Rewind", existingTunnel="Delete")
        await found.scene.steps(3)
        assert (await found.scene.object())["spec"] == spec

        await found.scene.edit({"suspend": False})
        after = (await found.reset())["tunnelId"]
        config = "ConfigMap", "default", f"{NAME}-config"
        await found.scene.until(lambda: after in found.scene.store.objects[config]["data"]["worker.yaml"])

        assert former not in found.scene.store.objects[config]["data"]["worker.yaml"]
        deployment = await found.scene.kube.get(DEPLOYMENT, "default", NAME)
        assert deployment is not None
        assert deployment["spec"]["replicas"] == 1


async def test_a_reset_of_an_object_that_is_not_suspended_is_refused_for_good() -> None:
    async with opened() as found:
        former = await found.begin()
        await found.ask("NewBase", existingTunnel="Delete")
        await found.scene.steps(2)
        refused = await found.reset()
        await found.suspend()
        await found.scene.steps(3)

        assert refused["state"] == "Refused"
        assert "kubectl ott pause flights-copy -n default --wait" in refused["message"]
        assert [tunnel["id"] for tunnel in found.tunnels()] == [former]
        assert await found.reset() == refused
        assert "ResetRefused" in found.scene.events()


async def test_a_reset_that_is_asked_for_with_the_pause_waits_for_it() -> None:
    async with opened() as found:
        former = await found.begin()
        await found.ask_and_suspend("NewBase", existingTunnel="Delete")
        await found.scene.steps()
        before = await found.reset()
        await found.rest()
        await found.scene.steps(2)

        assert before == {}
        assert (await found.reset())["state"] == "Done"
        assert [tunnel["id"] for tunnel in found.tunnels()] != [former]


async def test_an_annotation_that_cannot_be_read_is_refused_once() -> None:
    async with opened() as found:
        await found.begin()
        await found.annotate("reset it, please")
        await found.scene.steps(2)
        version = (await found.scene.object())["metadata"]["resourceVersion"]
        await found.scene.steps(3)

        assert "it is no JSON" in (await found.reset())["message"]
        assert (await found.scene.object())["metadata"]["resourceVersion"] == version
        assert await found.scene.reason("Ready") != "NoWorkersWanted"


async def test_what_was_known_of_a_tunnel_that_is_gone_stays_until_the_reset() -> None:
    async with opened() as found:
        await found.begin(**STREAM)
        await found.suspend()
        await found.drop_tunnel()
        await found.scene.steps(2)
        gone = (await found.scene.status())["tunnel"]
        await found.ask("Rewind", startTime=HOUR_AGO)
        await found.scene.steps(3)
        after = (await found.scene.status())["tunnel"]

        assert gone["lastStage"] == "ProcessStream"
        assert "stage" not in gone
        assert "lastStage" not in after
        assert (after["startFrom"], after["startTime"]) == ("Timestamp", HOUR_AGO)


async def test_a_tunnel_that_is_gone_leads_to_another_one() -> None:
    async with opened() as found:
        await found.begin()
        await found.suspend()
        await found.drop_tunnel()
        await found.scene.steps(2)
        assert await found.scene.reason("TunnelReady") == "TunnelNotFound"

        await found.ask("NewBase")
        await found.scene.steps(3)

        assert (await found.reset())["state"] == "Done"
        assert await found.scene.reason("Stalled") == "AsExpected"
        assert len(found.tunnels()) == 1


async def test_an_expired_tunnel_of_somebody_else_is_named_and_stays() -> None:
    async with opened() as found:
        former = await found.begin()
        await found.suspend()
        await found.drop_tunnel()
        theirs = await found.create_expired_tunnel()
        await found.ask("NewBase", existingTunnel="Delete")
        await found.scene.steps(3)

        assert [tunnel["id"] for tunnel in found.others(former)] == [theirs]
        assert await found.scene.reason("TunnelReady") == "TunnelReplaced"
        assert theirs in json.dumps((await found.scene.status())["conditions"])
