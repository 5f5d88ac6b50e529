"""What the API server does to an object before it stores it: prune, default and validate.

TablestoreTunnel objects are checked with the project's own CRD, apart from its CEL rules; an older definition is that
without some fields. Pods templates get the few defaults that a comparison of "applied" with "stored" has to survive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.simulation.apiserver.refusal import invalid

Schema = Mapping[str, Any]
CRD = Path(__file__).parents[3] / "crds"

_CONTAINER_DEFAULTS = {"terminationMessagePath": "/dev/termination-log"}
_POD_DEFAULTS: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """A CustomResourceDefinition: its schema, and what checks an object against it."""

    schema: Schema
    validator: jsonschema.Draft7Validator


@cache
def definition(*lacking: str) -> Definition:
    """The definition of TablestoreTunnel.

    Args:
        lacking: fields of the status that an older one does not have, as paths such as `tunnel.createIntentTime`.
    """
    (path,) = CRD.glob("*.yaml")
    (version,) = yaml.safe_load(path.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    for field in lacking:
        *parents, last = field.split(".")
        fields = schema["properties"]["status"]["properties"]
        for parent in parents:
            fields = fields[parent]["properties"]
        del fields[last]
    return Definition(schema, jsonschema.Draft7Validator(_plain(schema)))


def admitted(manifest: Mapping[str, Any], served: Definition) -> dict[str, Any]:
    """The object as it will be stored; `served` is the definition of TablestoreTunnel.

    Raises:
        Refusal: 422, it does not fit its schema.
    """
    if manifest["kind"] == "TablestoreTunnel":
        known = {key: manifest[key] for key in ("apiVersion", "kind", "metadata")}
        stored = dict(_pruned(manifest, served.schema)) | known
        stored = dict(_defaulted(stored, served.schema))
        for error in served.validator.iter_errors(stored):
            path = ".".join(str(part) for part in error.absolute_path)
            raise invalid(f'TablestoreTunnel "{manifest["metadata"]["name"]}" is invalid: {path}: {error.message}')
        return stored
    if manifest["kind"] == "Deployment":
        return _completed(manifest)
    return dict(manifest)


def _plain(schema: Any) -> Any:
    """The schema as JSON Schema: `nullable` and the extensions of Kubernetes have no meaning there."""
    if isinstance(schema, Mapping):
        return {key: _plain(value) for key, value in schema.items() if not key.startswith("x-kubernetes")}
    if isinstance(schema, list):
        return [_plain(value) for value in schema]
    return schema


def _pruned(value: Any, schema: Schema) -> Any:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(value, Mapping):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        kept = {}
        for key, below in value.items():
            if key in properties:
                kept[key] = _pruned(below, properties[key])
            elif others or (not properties and schema.get("type") == "object" and others is not False):
                kept[key] = below
        return kept
    if isinstance(value, list):
        return [_pruned(entry, schema.get("items") or {}) for entry in value]
    return value


def _defaulted(value: Any, schema: Schema) -> Any:
    if isinstance(value, Mapping):
        result = {key: _defaulted(below, (schema.get("properties") or {}).get(key, {})) for key, below in value.items()}
        for key, below in (schema.get("properties") or {}).items():
            if key not in result and "default" in below:
                result[key] = _defaulted(below["default"], below)
        return result
    if isinstance(value, list):
        return [_defaulted(entry, schema.get("items") or {}) for entry in value]
    return value


def _completed(deployment: Mapping[str, Any]) -> dict[str, Any]:
    spec = dict(deployment["spec"])
    template = dict(spec["template"])
    pod = {**_POD_DEFAULTS, **template["spec"]}
    pod["containers"] = [_CONTAINER_DEFAULTS | dict(container) for container in pod["containers"]]
    spec["template"] = template | {"spec": pod}
    return {**deployment, "spec": {"replicas": 1, **spec}}
