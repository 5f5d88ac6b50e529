"""The PodMonitor of an object's workers: made, kept as rendered, and removed when the object no longer asks. Pure.

status.podMonitor has its name from before the call that creates it until a look has found it gone. So an operator that
starts again knows of it, and an object that never asked for one is never looked at for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.kube.kinds import POD_MONITOR
from ots_tunnel_operator.manifests.pod_monitor import pod_monitor
from ots_tunnel_operator.plan.actions import Action, ApplyObject, Aside, DeleteObject, RecordStatus
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.absence import Missing
from ots_tunnel_operator.world.world import World


def monitoring(world: World, settings: Settings) -> tuple[Action, ...]:
    """What to do about the PodMonitor; nothing while it cannot be read.

    It is made once the Deployment exists: before that there is nothing to scrape, and the status has no conditions yet.

    Args:
        world: what was observed.
        settings: of the process.
    """
    resource, seen = world.resource, world.pod_monitor
    name, recorded = names.workers_name(resource.name), resource.status.get("podMonitor")
    if not isinstance(seen, Mapping | Missing):
        return ()
    if not resource.wants_pod_monitor:
        return _remove(name, seen)
    if world.deployment is None:
        return ()
    record = () if recorded == name else (RecordStatus({"podMonitor": name}),)
    labels = dict(settings.pod_monitor_labels)
    manifest = pod_monitor(resource.object, settings.pod_monitor_interval, labels)
    return (*record, Aside(ApplyObject(manifest)))


def _remove(name: str, seen: Mapping[str, Any] | Missing) -> tuple[Action, ...]:
    """Delete it once, and forget it when it is gone."""
    if isinstance(seen, Missing):
        return (RecordStatus({"podMonitor": None}),)
    # its deletion is under way; a finalizer may hold it for long
    is_going = seen["metadata"].get("deletionTimestamp")
    return () if is_going else (Aside(DeleteObject(POD_MONITOR, name)),)
