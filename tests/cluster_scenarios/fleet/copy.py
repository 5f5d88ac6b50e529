"""One TablestoreTunnel that copies a table: its document, its status, its workers, its equal copy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from ots_tunnel_operator.names import SECRETS_DIRECTORY
from tests.cluster_scenarios.fleet.fleet import FORMER_KEY, Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE, Document, NamedTunnel
from tests.demo import objects
from tests.support.waiting import wait_until


class Copy:
    """An object by name; its destination, tunnel and Secret have names of their own by default.

    Args:
        source: its source table, by default the shared one.
        destination, tunnel: names, where two objects are to share them.
    """

    def __init__(self, fleet: Fleet, name: str, *, source: str = "", destination: str = "", tunnel: str = "") -> None:
        self._fleet = fleet
        self._kube = fleet.kube
        self._space = ("-n", fleet.scenario.namespace)
        self.name = name
        self.source = source or fleet.scenario.table
        self.destination = destination or f"{name.replace('-', '_')}_copy"
        self.tunnel = NamedTunnel(fleet, tunnel or f"{name}-tunnel")
        self.secret = f"{name}-credentials"

    def apply(self, **spec: Any) -> None:
        """Apply the Secret and the object; `spec` has fields beside those of the demo's object."""
        self.set_key(FORMER_KEY)
        document = objects.tablestore_tunnel(self._fleet.scenario)
        document["metadata"]["name"] = self.name
        body = document["spec"]
        for side in (body["source"], body["sink"]["tablestore"]):
            side["credentials"] = {"secretRef": {"name": self.secret}}
        body["source"] |= {"table": self.source, "tunnel": {"name": self.tunnel.name, "type": "BaseAndStream"}}
        body["sink"]["tablestore"]["table"] = self.destination
        self._kube.apply(document | {"spec": body | spec})

    def set_key(self, pair: tuple[str, str]) -> None:
        """Write an AccessKey pair into the Secret."""
        metadata = {"name": self.secret, "namespace": self._fleet.scenario.namespace}
        data = {"accessKeyId": pair[0], "accessKeySecret": pair[1]}
        self._kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})

    def edit(self, **spec: Any) -> None:
        """Change fields of the spec."""
        change = json.dumps({"spec": spec})
        self._kube.kubectl(*self._space, "patch", "ott", self.name, "--type=merge", "-p", change)

    def delete(self) -> None:
        """Delete the object and wait until it is gone; its destination stays."""
        self._kube.kubectl(
            *self._space, "delete", "ott", self.name, "--ignore-not-found", "--timeout=150s", timeout=160
        )

    def delete_in_background(self) -> None:
        """Ask for the deletion alone."""
        self._kube.kubectl(*self._space, "delete", "ott", self.name, "--wait=false")

    def exists(self) -> bool:
        """Whether the API server has the object."""
        return bool(self._kube.kubectl(*self._space, "get", "ott", self.name, "--ignore-not-found", "-o", "name"))

    def document(self) -> Document:
        """Return the whole object."""
        found: Document = self._kube.get(*self._space, "ott", self.name)
        return found

    def status(self) -> Document:
        """Return the status; empty before the first one."""
        found: Document = self.document().get("status", {})
        return found

    def condition(self, kind: str) -> tuple[str, str]:
        """Return status and reason of a condition; empty texts before it is there."""
        return condition(self.status(), kind)

    def until(self, what: str, reached: Callable[[Document], Any], seconds: float | None = None) -> Any:
        """Wait until something is true of the status."""
        patience = self._fleet.scenario.patience if seconds is None else seconds
        return wait_until(
            lambda: reached(self.status()), patience, f"{self.name}: {what}", pause=PAUSE, explain=self._explain
        )

    def _explain(self) -> str:
        return ", ".join(f"{each['type']}={each['status']}/{each['reason']}" for each in self.status()["conditions"])

    def until_at_rest(self, workers: int | None = None) -> None:
        """Wait until the spec is carried out, changes are followed, and nothing moves.

        Args:
            workers: the number of ready workers, where it is known.
        """

        def look() -> bool:
            document = self.document()
            status = document.get("status", {})
            return bool(
                status.get("observedGeneration") == document["metadata"]["generation"]
                and condition(status, "Ready")[0] == "True"
                and condition(status, "Progressing")[0] == "False"
                and condition(status, "Rebalancing")[0] == "False"
                and (workers is None or status.get("readyReplicas") == workers)
            )

        wait_until(look, self._fleet.scenario.patience, f"{self.name} is at rest", pause=PAUSE, explain=self._explain)

    def pods(self) -> list[Document]:
        """Return its worker pods that are not being deleted."""
        items: list[Document] = self._kube.get(*self._space, "pod", "-l", self.selector)["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    @property
    def selector(self) -> str:
        """Label selector of its worker pods."""
        return f"ots-tunnel.dev/role=worker,ots-tunnel.dev/name={self.name}"

    def restarts(self) -> dict[str, int]:
        """Return the restarts of each worker pod."""
        return {
            pod["metadata"]["name"]: sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ()))
            for pod in self.pods()
        }

    def events(self) -> set[str]:
        """Return the reasons of its events."""
        words = ("events", "--field-selector", f"involvedObject.name={self.name}")
        return {item["reason"] for item in self._kube.get(*self._space, *words)["items"]}

    def mounted_key(self, pod: str) -> str:
        """Return the id of the AccessKey of the source in the files of a worker."""
        words = ("exec", pod, "--", "cat", f"{SECRETS_DIRECTORY}/source/accessKeyId")
        return self._kube.kubectl(*self._space, *words).strip()

    def assert_equal(self) -> None:
        """Wait until everything written so far is consumed, and compare both tables; no writer may run."""
        moment = time.time()
        wait_until(
            lambda: all(channel["consumePoint"] / 1e9 >= moment for channel in self.tunnel.channels()),
            self._fleet.scenario.patience,
            f"{self.name}: every channel is consumed past the last change",
            pause=PAUSE,
            explain=lambda: str(self.tunnel.channels()),
        )
        comparison = self._fleet.compare(self.source, self.destination)
        assert comparison.differences == 0, comparison.first
        assert comparison.rows > 0


def condition(status: Document, kind: str) -> tuple[str, str]:
    """Return status and reason of a condition of a status; empty texts where it is not there."""
    found = next((each for each in status.get("conditions", ()) if each["type"] == kind), None)
    return (found["status"], found["reason"]) if found else ("", "")
