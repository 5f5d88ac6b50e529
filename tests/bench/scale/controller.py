"""A controller and a kubelet in one: Deployments get pods that run at once, and a status."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import UTC, datetime

import yaml

from ots_tunnel.model import TunnelId
from ots_tunnel_operator import names
from tests.bench.scale.cluster import APPS, CORE, MERGE, Api, Document
from tests.bench.scale.workers import Workers

#: Deployments that are worked on at once.
WORKED_ON = 32


class Controller:
    """Follows every Deployment, and remembers what each of them asks for."""

    def __init__(self, api: Api, workers: Workers) -> None:
        self._api = api
        self._workers = workers
        self._turns = asyncio.Semaphore(WORKED_ON)
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._pods: dict[str, list[str]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: dict[str, int] = {}
        """Name of a Deployment -> workers that it asks for."""
        self.failure: BaseException | None = None

    async def run(self) -> None:
        """Follow Deployments until cancelled."""
        await self._api.follow(f"{APPS}/deployments", self._changed)

    def _changed(self, kind: str, found: Document) -> None:
        self.asked[found["metadata"]["name"]] = 0 if kind == "DELETED" else int(found["spec"]["replicas"])
        seen = (found.get("status") or {}).get("observedGeneration")
        if kind == "DELETED" or seen == found["metadata"]["generation"]:
            return
        task = asyncio.create_task(self._carry_out(found))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()

    async def _carry_out(self, found: Document) -> None:
        metadata, wanted = found["metadata"], int(found["spec"]["replicas"])
        pods = self._pods[metadata["name"]]
        async with self._turns, self._locks[metadata["name"]]:
            while len(pods) < wanted:
                pods.append(await self._start_pod(found, len(pods)))
            while len(pods) > wanted:
                path = f"{CORE}/namespaces/{metadata['namespace']}/pods/{pods.pop()}"
                await self._api.call("DELETE", path, {"gracePeriodSeconds": 0})
            counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
            status = {"status": {"observedGeneration": metadata["generation"], **counts}}
            path = f"{APPS}/namespaces/{metadata['namespace']}/deployments/{metadata['name']}/status"
            await self._api.call("PATCH", path, status, MERGE)

    async def _start_pod(self, found: Document, number: int) -> str:
        metadata, template = found["metadata"], found["spec"]["template"]
        namespace, name = metadata["namespace"], f"{metadata['name']}-{metadata['uid'][:5]}-{number:05}"
        config = await self._api.call(
            "GET", f"{CORE}/namespaces/{namespace}/configmaps/{names.config_name(metadata['name'])}"
        )
        document = yaml.load(config["data"][names.WORKER_FILE], yaml.CSafeLoader)
        source, tag = document["source"], f"{document['client']['tagPrefix']}-{name}"
        address = await self._workers.start(source["instance"], TunnelId(source["tunnelId"]), tag)
        about = {"name": name, "namespace": namespace, **template["metadata"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": template["spec"]}
        await self._api.call("POST", f"{CORE}/namespaces/{namespace}/pods", pod)
        await self._api.call("PATCH", f"{CORE}/namespaces/{namespace}/pods/{name}/status", running(address), MERGE)
        return name


def running(address: str) -> Document:
    """The status of a pod whose worker is ready."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    container = {"name": names.WORKER_CONTAINER, "image": "worker:test", "imageID": "", "restartCount": 0}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    return {
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": now,
            "conditions": conditions,
            "containerStatuses": [
                container | {"ready": True, "started": True, "state": {"running": {"startedAt": now}}}
            ],
        }
    }
