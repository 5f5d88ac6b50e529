"""The object under test on its cluster: its status, its application, the pods of its query."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.cluster_scenarios.fleet.copy import condition
from tests.cluster_scenarios.fleet.fleet import Fleet
from tests.cluster_scenarios.fleet.named_tunnel import PAUSE, Document
from tests.demo.lake.lake_object import APPLICATION, NAME, lake_object
from tests.support.waiting import wait_until

#: Seconds for a driver and its executor to start while two cores serve everything.
START = 420


class Query:
    """The object of `lake_object` with JSON lines."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._kube = fleet, fleet.kube
        self._space = ("-n", fleet.scenario.namespace)

    def apply(self) -> None:
        """Apply the object."""
        self._kube.apply(lake_object(self._fleet.scenario, {"compression": "gzip"}))

    def edit(self, **spec: Any) -> None:
        """Change fields of the spec."""
        self._kube.kubectl(*self._space, "patch", "ott", NAME, "--type=merge", "-p", json.dumps({"spec": spec}))

    def delete(self) -> None:
        """Delete the object and wait until it is gone."""
        self._kube.kubectl(*self._space, "delete", "ott", NAME, "--ignore-not-found", "--timeout=180s", timeout=200)

    def status(self) -> Document:
        """Return the status; empty before the first one."""
        found: Document = self._kube.get(*self._space, "ott", NAME).get("status", {})
        return found

    def batch(self) -> int:
        """Return the number of the last batch that the status shows; -1 without one."""
        return int(self.status().get("spark", {}).get("batchId", -1))

    def pods(self, role: str) -> dict[str, Document]:
        """Return the pods of a role of Spark, `driver` or `executor`, that have not ended, by their uid."""
        words = ("pod", "-l", f"spark-role={role},ots-tunnel.dev/name={NAME}")
        items = self._kube.get(*self._space, *words)["items"]
        return {one["metadata"]["uid"]: one for one in items if _is_alive(one)}

    def kill(self, role: str) -> None:
        """Delete a pod of a role without waiting for its end."""
        pod = next(iter(self.pods(role).values()))["metadata"]["name"]
        self._kube.kubectl(*self._space, "delete", "pod", pod, "--force", "--grace-period=0")

    def application(self) -> Document | None:
        """Return the SparkApplication; None where there is none."""
        words = ("get", "sparkapplication", APPLICATION, "--ignore-not-found", "-o", "json")
        text = self._kube.kubectl(*self._space, *words)
        return json.loads(text) if text.strip() else None

    def until(self, what: str, reached: Callable[[Document], Any], seconds: float = START) -> None:
        """Wait until something is true of the status."""
        wait_until(lambda: reached(self.status()), seconds, what, pause=PAUSE, explain=self._explain)

    def until_ready(self) -> None:
        """Wait until the object is Ready."""
        self.until("the object is Ready", lambda status: condition(status, "Ready")[0] == "True")

    def until_behind(self, batch: int) -> None:
        """Wait until a later batch than this one is in the status."""
        self.until(f"a batch behind {batch}", lambda status: status.get("spark", {}).get("batchId", -1) > batch)

    def _explain(self) -> str:
        status = self.status()
        found = [f"{each['type']}={each['status']}/{each['reason']}" for each in status.get("conditions", ())]
        return f"{status.get('spark')}; {', '.join(found)}"


def _is_alive(pod: Document) -> bool:
    """Whether a pod has neither ended nor is being deleted: an executor outlasts its driver, as Completed."""
    return "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] in ("Pending", "Running")
