"""Somebody exchanges the workers' Deployment for one of their own, and suspends the object in the same moment.

What the operator's watch has seen is the former Deployment: it may not scale the one that has the name now.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.apiserver.api import APPLY
from tests.simulation.apiserver.store import Manifest
from tests.simulation.fleet.newcomers.newcomer import Newcomer

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds for which events are late, and for which theirs has to stay as it is.
LATE_SECONDS, LASTING_SECONDS = 30.0, 90.0
#: An image that no registry has: pods of theirs are none of the story's workers.
THEIR_IMAGE = "else:1"


class TakenDeployment:
    """An object whose Deployment somebody else's takes the place of."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._object = Newcomer(fleet, "taken")

    async def happen(self) -> None:
        """Exchange the Deployment of an object that is suspended."""
        fleet, new = self._fleet, self._object
        new.apply()
        await new.ready("a new object is not Ready")
        fleet.kubelet.unfetchable.add(THEIR_IMAGE)
        fleet.late_events_until = fleet.loop.now + LATE_SECONDS
        new.edit({"suspend": True})
        fleet.story.tell("user", "exchanges the Deployment")
        fleet.user("DELETE", new.deployment_path)
        theirs = _made(fleet.user("PATCH", new.deployment_path, self._theirs(), APPLY))
        await asyncio.sleep(LASTING_SECONDS)
        found = new.deployment()
        if found is None or _made(found) != theirs:
            fleet.violate("foreign", "the Deployment of somebody else was changed or deleted")
        fleet.user("DELETE", new.deployment_path)
        await new.gone()

    def _theirs(self) -> Manifest:
        labels = {"app": "else"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "else", "image": THEIR_IMAGE}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "taken"}, "spec": spec}


def _made(deployment: Manifest) -> tuple[object, ...]:
    """What somebody has made; the controllers write the status."""
    metadata = deployment["metadata"]
    return metadata["uid"], metadata["generation"], deployment["spec"], metadata.get("annotations")
