"""Whether workers.podTemplate sets the memory limit of the worker's container. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator import names


def sets_memory_limit(template: Mapping[str, Any]) -> bool:
    """Whether it does; otherwise the limit follows from workers.memoryBudgetBytes (`manifests.worker_deployment`)."""
    containers = (template.get("spec") or {}).get("containers") or ()
    own = (container for container in containers if container.get("name") == names.WORKER_CONTAINER)
    return any("memory" in ((container.get("resources") or {}).get("limits") or {}) for container in own)
