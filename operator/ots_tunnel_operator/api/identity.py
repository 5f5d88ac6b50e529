"""The identity of the tunnel that an object consumes: two objects of one identity would consume one tunnel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class TunnelIdentity(NamedTuple):
    """Where a tunnel is; the endpoint counts by host, so that its scheme may change."""

    host: str
    instance: str
    table: str
    tunnel: str

    @classmethod
    def at(cls, endpoint: str, instance: str, table: str, tunnel: str) -> TunnelIdentity:
        """The tunnel at an endpoint."""
        return cls(urlsplit(endpoint).netloc.lower(), instance, table, tunnel)


def identity_of(spec: Mapping[str, Any]) -> TunnelIdentity | None:
    """`TunnelSpec.identity` of a spec that was not validated, for kopf's index; None where no tunnel is used."""
    source = spec.get("source") or {}
    tunnel = source.get("tunnel") or {}
    if tunnel.get("type") == "BaseData" and (spec.get("engine") or {}).get("baseData") == "Spark":
        return None
    texts = (str(value) for value in (source.get("instance"), source.get("table"), tunnel.get("name")))
    return TunnelIdentity.at(str(source.get("endpoint", "")), *texts)
