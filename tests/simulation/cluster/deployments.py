"""The Deployment controller: creates and deletes pods and writes the status, whenever something changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from tests.simulation.apiserver.api import Api, Request
from tests.simulation.apiserver.store import Manifest, copied
from tests.simulation.cluster.rollout import TEMPLATE_HASH, PodState, next_step, status_of, template_hash

MANAGER = "kube-controller-manager"
_COST = "controller.kubernetes.io/pod-deletion-cost"


class Deployments:
    """Brings the pods of every Deployment to what it asks for, one step at a time.

    Args:
        suffix: makes the random end of a pod's name.
    """

    def __init__(self, api: Api, clock: Callable[[], float], suffix: Callable[[], str]) -> None:
        self._api = api
        self._clock = clock
        self._suffix = suffix

    def step(self) -> None:
        """Act on every Deployment once."""
        for deployment in list(self._api.store.all("Deployment")):
            if not deployment["metadata"].get("deletionTimestamp"):
                self._step(deployment)

    def _step(self, deployment: Manifest) -> None:
        namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
        pods = self._pods(deployment)
        step = next_step(deployment, pods, self._clock())
        for _ in range(step.create):
            self._create(deployment)
        for pod in step.delete:
            self._call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod}")
        status = status_of(deployment, self._pods(deployment), self._clock())
        if status != deployment.get("status"):
            body = copied(deployment) | {"status": status}
            del body["metadata"]["resourceVersion"]
            self._call("PUT", f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status", body)

    def _pods(self, deployment: Manifest) -> list[PodState]:
        uid = deployment["metadata"]["uid"]
        return [
            _state(pod)
            for pod in self._api.store.all("Pod", deployment["metadata"]["namespace"])
            if any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences") or ())
            and (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded")
        ]

    def _create(self, deployment: Manifest) -> None:
        metadata, template = deployment["metadata"], copied(deployment["spec"]["template"])
        current = template_hash(deployment)
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{metadata['name']}-{current}-{self._suffix()}",
                "namespace": metadata["namespace"],
                "labels": {**(template["metadata"].get("labels") or {}), TEMPLATE_HASH: current},
                "annotations": template["metadata"].get("annotations") or {},
                "ownerReferences": [owner],
            },
            "spec": template["spec"],
        }
        self._call("POST", f"/api/v1/namespaces/{metadata['namespace']}/pods", pod)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        self._api.call(Request(method, path, body, manager=MANAGER))


def _state(pod: Manifest) -> PodState:
    metadata, status = pod["metadata"], pod.get("status") or {}
    ready: Mapping[str, Any] = next((entry for entry in status.get("conditions") or () if entry["type"] == "Ready"), {})
    return PodState(
        name=metadata["name"],
        template=(metadata.get("labels") or {}).get(TEMPLATE_HASH, ""),
        ready_since=_seconds(ready["lastTransitionTime"]) if ready.get("status") == "True" else None,
        leaving=bool(metadata.get("deletionTimestamp")),
        created=_seconds(metadata["creationTimestamp"]),
        deletion_cost=int((metadata.get("annotations") or {}).get(_COST, 0)),
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
