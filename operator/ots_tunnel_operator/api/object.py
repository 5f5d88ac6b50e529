"""The TablestoreTunnel object: metadata, spec and status (docs/object.md); the single source of the CRD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, Time, rule, rules
from ots_tunnel_operator.api.spec import TunnelSpec
from ots_tunnel_operator.api.status import TunnelObjectStatus
from ots_tunnel_operator.names import MAX_NAME


class ObjectMeta(ApiModel):
    """The part of an object's metadata that the operator reads."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    annotations: dict[str, str] = Field(default_factory=dict)


class TablestoreTunnel(ApiModel):
    """Copies a Tablestore table to a sink, and the changes of the table after it, through one tunnel."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"self.metadata.name.size() <= {MAX_NAME}",
                f"metadata.name must not be longer than {MAX_NAME} characters: names of pods are made from it",
            ),
            rule(
                "!has(self.spec.source.tunnel) || self.spec.engine.stream != 'Spark' && "
                "(self.spec.source.tunnel.type == 'Stream' || self.spec.engine.baseData != 'Spark') || "
                "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
                "metadata.name must begin with a letter and hold only small letters, digits and dashes "
                "where an engine in use (engine.baseData, engine.stream) is Spark: the Spark operator refuses other "
                "names",
            ),
        )
    )

    metadata: ObjectMeta
    spec: TunnelSpec
    """Desired state: the table to read, the sink, and the engines that copy."""
    status: TunnelObjectStatus = TunnelObjectStatus()
    """Observed state, written by the operator."""

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> TablestoreTunnel:
        """Read an object from the API server's JSON.

        Raises:
            pydantic.ValidationError: the object does not match the models of this operator version.
        """
        return cls.model_validate({**body, "metadata": dict(body["metadata"]), "status": body.get("status") or {}})

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the object and of all its children."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Unique id of the object; an object that is deleted and applied again has a new one."""
        return self.metadata.uid
