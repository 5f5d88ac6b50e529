"""The operator dies before or after the answer of its n-th write and is started again: the end is always the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ots_emulator.thread import EmulatorThread
from ots_tunnel.client import TunnelClient
from ots_tunnel.tables import TableAdmin
from ots_tunnel_operator.kube import Kube
from tests.operator.api_server import ApiServer
from tests.operator.scene import Scene, fill, open_scene

pytestmark = pytest.mark.api

#: More writes than a creation takes; a death that never comes is an undisturbed run.
WRITES = 18
#: Those that lie around the creating calls.
EVERY_TIME = {(3, "after"), (5, "after"), (8, "before")}


class Death:
    """Counts writes to both servers and ends the operator at one of them."""

    def __init__(self, number: int, moment: str) -> None:
        self.writes = 0
        self._number = number
        self._moment = moment

    @property
    def due(self) -> bool:
        return self.writes == self._number

    def before(self) -> None:
        self.writes += 1
        if self.due and self._moment == "before":
            raise asyncio.CancelledError("killed before the call")

    def after(self) -> None:
        if self.due and self._moment == "after":
            raise asyncio.CancelledError("killed after the answer")


def deadly(death: Death, call: Callable[..., Any]) -> Callable[..., Any]:
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        if args[1] == "GET":
            return await call(*args, **kwargs)
        death.before()
        answer = await call(*args, **kwargs)
        death.after()
        return answer

    return guarded


def deadly_sync(death: Death, call: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        death.before()
        answer = call(*args, **kwargs)
        death.after()
        return answer

    return guarded


async def created(scene: Scene) -> dict[str, Any]:
    """Passes until everything is there, with a restart after a death; what is there then, ids and times apart."""
    for _ in range(40):
        try:
            await scene.step()
        except asyncio.CancelledError:
            await scene.close()
            scene.memories.clear()
            continue
        if scene.status().get("replicas") == 1:
            break
    else:
        raise AssertionError(f"never settled: {scene.status()}")
    await scene.step()
    status = scene.status()
    return {
        "stored": scene.stored(),
        "tunnel": {key: status["tunnel"][key] for key in ("type", "createdByOperator", "expired")},
        "intent": "createIntentTime" in status["tunnel"],
        "destination": (status["destination"]["createdByOperator"], "ensuredTime" in status["destination"]),
        "phase": status["phase"],
        "conditions": [(item["type"], item["status"], item["reason"]) for item in status["conditions"]],
        "children": [scene.names(kind) for kind in ("deployments", "configmaps")],
        "replicas": scene.read("deployment", "flights-copy")["spec"]["replicas"],
    }


async def run(api: ApiServer, monkeypatch: pytest.MonkeyPatch, death: Death) -> dict[str, Any]:
    with EmulatorThread() as emulator:
        fill(emulator, "flights")
        async with open_scene(api, emulator) as scene:
            scene.secret()
            scene.apply()
            with monkeypatch.context() as patch:
                patch.setattr(Kube, "_call", deadly(death, Kube._call))
                patch.setattr(TunnelClient, "create_tunnel", deadly(death, TunnelClient.create_tunnel))
                patch.setattr(TableAdmin, "create", deadly_sync(death, TableAdmin.create))
                return await created(scene)


CASES = [
    pytest.param(
        number, moment, id=f"{moment}-{number}", marks=() if (number, moment) in EVERY_TIME else pytest.mark.long
    )
    for number in range(1, WRITES + 1)
    for moment in ("before", "after")
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("number", "moment"), CASES)
async def test_the_end_is_that_of_an_undisturbed_run(
    api_server: ApiServer, monkeypatch: pytest.MonkeyPatch, number: int, moment: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    undisturbed = Death(0, "never")
    expected = await run(api_server, monkeypatch, undisturbed)

    death = Death(number, moment)

    found = await run(api_server, monkeypatch, death)

    assert undisturbed.writes <= WRITES
    # it went on after its death, unless that was the last write or came later than all of them
    assert death.writes > number or number >= undisturbed.writes
    assert found == expected
