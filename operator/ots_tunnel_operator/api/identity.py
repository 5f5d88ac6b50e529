"""Identity of the tunnel that an object consumes; two objects with the same identity would share one tunnel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ots_tunnel.endpoint import region_of


def name_of_leases(table: object) -> str:
    """What stands for a tunnel's name where workers share a table of leases; no tunnel can have it."""
    return f"leases:{table}"


def region_in(endpoint: str) -> str:
    """What distinguishes instances in an endpoint that was not validated."""
    try:
        return region_of(endpoint)
    except ValueError:  # such as one with an open bracket
        return endpoint.lower()


class TunnelIdentity(NamedTuple):
    """Location of a tunnel. Of the endpoint only what distinguishes instances counts (`ots_tunnel.endpoint.region_of`),
    so that its scheme, or a vendor's host for the one of the VPC, may change."""

    region: str
    instance: str
    table: str
    tunnel: str

    @classmethod
    def at(cls, endpoint: str, instance: str, table: str, tunnel: str) -> TunnelIdentity:
        """Build the identity from an endpoint, an instance, a table and a tunnel name."""
        return cls(region_in(endpoint), instance, table, tunnel)


def identity_of(spec: Mapping[str, Any]) -> TunnelIdentity | None:
    """Compute `TunnelSpec.identity` from an unvalidated spec, for kopf's index; None where no tunnel is used."""
    source = spec.get("source") or {}
    tunnel = source.get("tunnel") or {}
    if tunnel.get("type") == "BaseData" and (spec.get("engine") or {}).get("baseData") == "Spark":
        return None
    name = tunnel.get("name") if not source.get("stream") else name_of_leases(source["stream"].get("leaseTable"))
    texts = (str(value) for value in (source.get("instance"), source.get("table"), name))
    return TunnelIdentity.at(str(source.get("endpoint", "")), *texts)
