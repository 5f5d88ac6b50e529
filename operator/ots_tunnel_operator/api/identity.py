"""Identity of the tunnel that an object consumes; two objects with the same identity would share one tunnel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class TunnelIdentity(NamedTuple):
    """Location of a tunnel. Of the endpoint only the host counts, so that its scheme may change."""

    host: str
    instance: str
    table: str
    tunnel: str

    @classmethod
    def at(cls, endpoint: str, instance: str, table: str, tunnel: str) -> TunnelIdentity:
        """Build the identity from an endpoint, an instance, a table and a tunnel name."""
        return cls(urlsplit(endpoint).netloc.lower(), instance, table, tunnel)


def identity_of(spec: Mapping[str, Any]) -> TunnelIdentity | None:
    """Compute `TunnelSpec.identity` from an unvalidated spec, for kopf's index; None where no tunnel is used."""
    source = spec.get("source") or {}
    tunnel = source.get("tunnel") or {}
    if tunnel.get("type") == "BaseData" and (spec.get("engine") or {}).get("baseData") == "Spark":
        return None
    texts = (str(value) for value in (source.get("instance"), source.get("table"), tunnel.get("name")))
    return TunnelIdentity.at(str(source.get("endpoint", "")), *texts)
