"""From a path of the Kubernetes API to the object or collection that it names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from ots_tunnel_operator.kube.kinds import KINDS, Kind
from tests.simulation.apiserver.refusal import not_found

_BY_PLACE: Mapping[tuple[str, str], Kind] = {(kind.api_version, kind.plural): kind for kind in KINDS.values()}


@dataclass(frozen=True, slots=True)
class Place:
    """An object, or a collection where `name` is empty; every namespace where `namespace` is empty."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(path: str) -> Place:
    """The place of a path such as /api/v1/namespaces/shop/configmaps/orders.

    Raises:
        Refusal: 404, the API server does not serve it.
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind = _BY_PLACE.get((version, rest[0] if rest else ""))
    if kind is None or len(rest) > 3:
        raise not_found(f"the server could not find the requested resource: {path}")
    return Place(kind, namespace, *rest[1:])


def selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Whether a label selector such as `a=b,c!=d,e` selects these labels."""
    return all(_fits(term.strip(), labels) for term in selector.split(",") if term.strip())


def _fits(term: str, labels: Mapping[str, str]) -> bool:
    if "!=" in term:
        key, value = term.split("!=", 1)
        return labels.get(key) != value
    if "=" in term:
        key, value = term.replace("==", "=").split("=", 1)
        return labels.get(key) == value
    return term in labels
