"""An instance that never answers: its objects say so together, and no other object waits for it."""

from __future__ import annotations

import asyncio
import base64
import random
import time
from dataclasses import replace
from typing import Any

from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.metrics import OperatorMetrics
from ots_tunnel_operator.names import FINALIZER
from ots_tunnel_operator.runtime import Runtime
from ots_tunnel_operator.times import timestamp
from ots_tunnel_operator.turns.calls import CALLS
from tests.support.kube.kube_memory import KubeMemory
from tests.support.operator.objects import tunnel_object
from tests.support.operator.worlds import SETTINGS, TUNNEL_ID

OBJECTS = 60
#: Fewer passes at once than objects on the silent instance, and a time-out that is longer than what the processor needs
#: for the first round of all passes, also where it is busy.
PATIENT = replace(SETTINGS, passes=4, call_seconds=3)


class Memory(KubeMemory):
    """Objects, and a Secret of any name."""

    async def close(self) -> None:
        """Nothing is open."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        if kind.kind != "Secret":
            return await super().get(kind, namespace, name)
        data = {key: base64.b64encode(b"key").decode() for key in ("accessKeyId", "accessKeySecret")}
        return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": "1"}, "data": data}


def running(name: str, endpoint: str) -> dict[str, Any]:
    """An object that was Ready in its last pass."""
    body = tunnel_object(name, source__endpoint=endpoint, sink__tablestore__endpoint=endpoint)
    sink = body["spec"]["sink"]["tablestore"]
    since = {"createIntentTime": "t", "createdByOperator": True}
    status = {
        "tunnel": {"id": TUNNEL_ID, **since},
        "destination": {"instance": sink["instance"], "table": sink["table"], "ensuredTime": "t", **since},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Consuming"}],
    }
    body["metadata"] |= {
        "uid": f"{name}-uid",
        "finalizers": [FINALIZER],
        "generation": 1,
        "creationTimestamp": timestamp(time.time() - 9e4),
    }
    return body | {"status": status}


async def test_a_silent_instance_costs_its_objects_one_time_out_and_the_others_nothing() -> None:
    connections = 0

    async def hole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.read(65536):
            pass
        writer.close()

    server = await asyncio.start_server(hole, "127.0.0.1", 0)
    silent = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    bodies = {f"silent-{number}": running(f"silent-{number}", silent) for number in range(OBJECTS)}
    bodies["other"] = running("other", "http://127.0.0.1:9")
    kube = Memory({("TablestoreTunnel", name): body for name, body in bodies.items()})
    runtime = Runtime(PATIENT, OperatorMetrics(), entropy=random.Random(1))
    await runtime.open(kube, watch=False)
    reconciler = runtime.reconciler(lambda resource: None)
    ended = []

    async def one_pass(name: str) -> None:
        await reconciler.step("default", name, runtime.cache(f"{name}-uid", "default", name))
        ended.append(name)

    # the object of the other instance comes last
    await asyncio.gather(*(one_pass(name) for name in bodies))
    await runtime.close()
    server.close()

    assert ended[0] == "other"
    # without the shared failure each object would have sent two calls, one for each side
    assert connections <= CALLS + 1
    for name in bodies:
        found = kube.objects["TablestoreTunnel", name]["status"]["conditions"]
        (ready,) = (condition for condition in found if condition["type"] == "Ready")
        assert (ready["status"], ready["reason"]) != ("True", "Consuming"), name
        assert "no answer" in ready["message"], name
