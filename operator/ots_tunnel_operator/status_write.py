"""The one way to write a status: against the version of the object that the decision came from.

The API server drops, without an error, every field that the CRD does not have. So the answer to a write is compared
with what was wanted: an operator that is newer than its CRD says so, and relies on nothing that was dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator.kube.cluster import Cluster
from ots_tunnel_operator.kube.errors import KubeError
from ots_tunnel_operator.kube.kinds import TUNNEL
from ots_tunnel_operator.loop_cache import LoopCache
from ots_tunnel_operator.world.resource import Named


class StatusOutdated(Exception):
    """Another client has changed the object since it was read: the decision has to be made again."""


@dataclass(frozen=True, slots=True)
class Written:
    """A status that was written."""

    stored: Mapping[str, Any] | None
    """As the API server has stored it; None where its answer does not show it."""


async def write_status(
    kube: Cluster, resource: Named, change: Mapping[str, Any], cache: LoopCache
) -> Mapping[str, Any] | None:
    """Merge a change into the stored status; the next write of this loop relies on the version of the answer.

    Returns:
        The status as stored; None where the answer does not show it.

    Raises:
        StatusOutdated: the object has changed since this loop read or wrote it.
        KubeError: the API server refuses the write.
    """
    patch: dict[str, Any] = {"status": dict(change)}
    if cache.version:
        patch["metadata"] = {"resourceVersion": cache.version}
    try:
        answer = await kube.patch(TUNNEL, resource.namespace, resource.name, patch, "status")
    except KubeError as error:
        if error.status == 409:
            raise StatusOutdated(str(error)) from error
        raise
    cache.version = str(((answer or {}).get("metadata") or {}).get("resourceVersion") or "")
    # what a failed pass changes is the status as it is now, not as this pass has read it
    cache.body = answer or cache.body
    return (answer or {}).get("status")


def dropped_fields(wanted: Mapping[str, Any], stored: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Paths of the fields that were written and are not stored, such as `status.verdict`; list items are `[]`."""
    return () if stored is None else tuple(dict.fromkeys(_dropped(wanted, stored, "status")))


def _dropped(wanted: Any, stored: Any, path: str) -> Iterator[str]:
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        for key, value in wanted.items():
            if value is None:
                continue
            if key in stored:
                yield from _dropped(value, stored[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif _is_list(wanted) and _is_list(stored):
        for value, found in zip(wanted, stored, strict=False):
            yield from _dropped(value, found, f"{path}[]")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
