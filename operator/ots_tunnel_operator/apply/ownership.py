"""Whose an object is that has the name of a child: what belongs to something else is never touched.

owned by this object             applied, scaled, deleted
owned by a deleted one of its    waited for: garbage collection removes it
  name, of another uid
anything else                    refused, until a person removes or renames it
"""

from __future__ import annotations

from ots_tunnel_operator import KIND
from ots_tunnel_operator.kube.errors import NameConflict
from ots_tunnel_operator.kube.kinds import Kind, Manifest
from ots_tunnel_operator.manifests.children import is_child
from ots_tunnel_operator.world.resource import Resource


class PredecessorThere(Exception):
    """A child of a deleted object of the same name still exists; garbage collection will remove it."""


def refuse_foreign(existing: Manifest, kind: Kind, resource: Resource) -> None:
    """Refuse to touch an object that is no child of `resource`.

    Raises:
        PredecessorThere: it is one of a deleted object of the same name. NameConflict: it belongs to something else.
    """
    name, namespace = existing["metadata"]["name"], resource.namespace
    owners = existing["metadata"].get("ownerReferences") or ()
    if any((owner.get("kind"), owner.get("name")) == (KIND, resource.name) for owner in owners) and not any(
        owner.get("uid") == resource.uid for owner in owners
    ):
        raise PredecessorThere(f"{kind.kind} {name!r} of a deleted object of this name is being removed")
    if is_child(existing, kind, resource.name, resource.uid):
        return
    raise NameConflict(
        f"{kind.kind} {name!r} in namespace {namespace!r} exists and belongs to something else: delete or rename "
        f"it, or create an object with another name instead"
    )
