"""Identity of the tunnel that an object consumes; two objects with the same identity would share one tunnel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

#: Port that an endpoint without one has.
_DEFAULT_PORTS: Mapping[str, str] = {"http": ":80", "https": ":443"}


class TunnelIdentity(NamedTuple):
    """Location of a tunnel. Of the endpoint only host and port count, so that its scheme may change; a port that is the
    default of the scheme is left out."""

    host: str
    instance: str
    table: str
    tunnel: str

    @classmethod
    def at(cls, endpoint: str, instance: str, table: str, tunnel: str) -> TunnelIdentity:
        """Build the identity from an endpoint, an instance, a table and a tunnel name."""
        try:
            url = urlsplit(endpoint)
        except ValueError:  # an unvalidated text, such as one with an open bracket
            return cls(endpoint.lower(), instance, table, tunnel)
        host = url.netloc.lower().removesuffix(_DEFAULT_PORTS.get(url.scheme, ""))
        return cls(host, instance, table, tunnel)


def identity_of(spec: Mapping[str, Any]) -> TunnelIdentity | None:
    """Compute `TunnelSpec.identity` from an unvalidated spec, for kopf's index; None where no tunnel is used."""
    source = spec.get("source") or {}
    tunnel = source.get("tunnel") or {}
    if tunnel.get("type") == "BaseData" and (spec.get("engine") or {}).get("baseData") == "Spark":
        return None
    texts = (str(value) for value in (source.get("instance"), source.get("table"), tunnel.get("name")))
    return TunnelIdentity.at(str(source.get("endpoint", "")), *texts)
