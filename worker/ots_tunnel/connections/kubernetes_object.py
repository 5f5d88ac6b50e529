"""The tables and keys of a TablestoreTunnel object and its Secrets."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ots_tunnel.connections.connection import Origin
from ots_tunnel.credentials import CredentialsProvider, static_credentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

#: The kind as kubectl finds it also where another one has the same short name.
KIND = "tablestoretunnels.ots-tunnel.dev"


class ReadsObjects(Protocol):
    """The part of `Kubectl` that is needed here."""

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """One object; see `Kubectl.get`."""
        ...


@dataclass(frozen=True, slots=True)
class TableOrigin:
    """A table that an object names, and how to reach it."""

    origin: Origin
    table: str


class NamedObject:
    """A TablestoreTunnel object; Secrets are read when a side of it is asked for.

    Args:
        reference: NAMESPACE/NAME.
        reads: reads from the API server.

    Raises:
        ConfigError: the reference is malformed, or there is no such object.
    """

    def __init__(self, reference: str, reads: ReadsObjects) -> None:
        self.reference = reference
        self._namespace, slash, name = reference.partition("/")
        if not (self._namespace and slash and name) or "/" in name:
            raise ConfigError(
                f"--from-object: found {reference!r}, allowed is NAMESPACE/NAME, such as shop/orders-copy"
            )
        self._reads = reads
        self._spec: Mapping[str, Any] = reads.get(KIND, self._namespace, name)["spec"]

    def __repr__(self) -> str:
        return f"NamedObject({self.reference})"

    @property
    def tunnel(self) -> str:
        """Name of the tunnel.

        Raises:
            ConfigError: the object reads a stream, without a tunnel.
        """
        source = self._spec["source"]
        if "tunnel" not in source:
            leases = source.get("stream", {}).get("leaseTable")
            raise ConfigError(
                f"{self.reference}: spec.source.tunnel: found none, because the object reads its table by leases; see "
                f"`ots-tunnel stream leases {source['table']} {leases} --from-object {self.reference}`"
            )
        return str(source["tunnel"]["name"])

    @property
    def lease_table(self) -> str:
        """Name of the table of leases.

        Raises:
            ConfigError: the object reads a tunnel.
        """
        source = self._spec["source"]
        if "stream" not in source:
            raise ConfigError(
                f"{self.reference}: spec.source.stream: found none, because the object reads a tunnel; see `ots-tunnel "
                f"channels --from-object {self.reference}`"
            )
        return str(source["stream"]["leaseTable"])

    def source(self) -> TableOrigin:
        """The source.

        Raises:
            ConfigError: its Secret is missing or lacks a key.
        """
        return self._side(self._spec["source"], "spec.source")

    def destination(self) -> TableOrigin:
        """The destination, which is to be equal to the source.

        Raises:
            ConfigError: the sink is no table, its workers transform the records, or its Secret is missing or lacks a
                key.
        """
        sink: Mapping[str, Any] = self._spec["sink"]
        if "tablestore" not in sink:
            raise ConfigError(
                f"{self.reference}: spec.sink: found {', '.join(sink)}, allowed is tablestore: only tables can be "
                "compared"
            )
        for name in ("columns", "filter"):
            section = self._spec.get("delivery", {}).get(name) or {}
            if any(section.values()):
                raise ConfigError(f"{self.reference}: spec.delivery.{name}: makes a copy that differs from its source")
        return self._side(sink["tablestore"], "spec.sink.tablestore")

    def _side(self, section: Mapping[str, Any], path: str) -> TableOrigin:
        secret = section["credentials"]["secretRef"]["name"]
        words = f"Secret {self._namespace}/{secret}"
        keys = _keys(self._reads.get("secret", self._namespace, secret).get("data") or {}, words)
        names = {part: f"{path}.{part} of {self.reference}" for part in ("endpoint", "instance")}
        origin = Origin(section["endpoint"], section["instance"], keys, {**names, "credentials": words})
        return TableOrigin(origin, section["table"])


def _keys(data: Mapping[str, str], words: str) -> CredentialsProvider:
    values = {name: _decoded(data, name, words) for name in ("accessKeyId", "accessKeySecret", "securityToken")}
    if missing := [name for name in ("accessKeyId", "accessKeySecret") if not values[name]]:
        raise ConfigError(f"{words}: missing {' and '.join(missing)}, found {', '.join(sorted(data)) or 'no key'}")
    return static_credentials(
        Credentials(values["accessKeyId"], values["accessKeySecret"], values["securityToken"] or None)
    )


def _decoded(data: Mapping[str, str], name: str, words: str) -> str:
    try:
        return base64.b64decode(data.get(name, ""), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        raise ConfigError(f"{words}: {name}: found bytes that are not text") from None
