"""The fields of the object as Markdown tables, from the CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tests.docs.pages import ROOT

CRD = ROOT / "crds" / "ots-tunnel.dev_tablestoretunnels.yaml"


@dataclass(frozen=True)
class Field:
    """One field of the object.

    Args:
        path: from `spec` or `status` on, such as `source.tunnel.name`; `[]` marks the elements of a list.
        schema: its OpenAPI schema.
        required: whether its parent needs it.
    """

    path: str
    schema: Mapping[str, Any]
    required: bool

    def row(self) -> str:
        """The field as a row of a table."""
        cells = (f"`{self.path}`", self._type(), self._default(), self._allowed(), self.schema.get("description", ""))
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

    def _type(self) -> str:
        kind = self.schema.get("type", "any")
        return str(self.schema.get("format") if self.schema.get("format") == "date-time" else kind)

    def _default(self) -> str:
        if self.required:
            return "required"
        default = self.schema.get("default")
        if default is None or isinstance(default, dict | list):
            return ""
        return (
            f"`{default}`" if not isinstance(default, bool | str) else f"`{yaml.safe_dump(default).split(chr(10))[0]}`"
        )

    def _allowed(self) -> str:
        schema = self.schema
        if "enum" in schema:
            return ", ".join(f"`{value}`" for value in schema["enum"])
        words = []
        if "minimum" in schema and "maximum" in schema and schema["maximum"] != 2**31 - 1:
            words.append(f"{schema['minimum']} to {schema['maximum']}")
        elif schema.get("minimum") is not None:
            words.append(f"{schema['minimum']} and more")
        if "pattern" in schema:
            words.append(f"`{schema['pattern']}`")
        if "maxLength" in schema and not self.path.startswith("conditions"):
            words.append(f"up to {schema['maxLength']} characters")
        if "maxProperties" in schema:
            words.append(f"up to {schema['maxProperties']} entries")
        if "maxItems" in schema:
            words.append(f"up to {schema['maxItems']} entries")
        return ", ".join(words)


def version() -> Mapping[str, Any]:
    """The served version of the definition."""
    found: Mapping[str, Any] = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]
    return found


def schema(part: str) -> Mapping[str, Any]:
    """The schema of `spec` or `status`."""
    found: Mapping[str, Any] = version()["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def fields(parent: Mapping[str, Any], prefix: str = "") -> Iterator[Field]:
    """All fields below a schema, parents first."""
    for name, child in parent.get("properties", {}).items():
        path = f"{prefix}{name}"
        yield Field(path, child, name in parent.get("required", ()))
        yield from fields(child, f"{path}.")
        if "items" in child:
            yield from fields(child["items"], f"{path}[].")


def fields_of(part: str) -> str:
    """All fields of `spec` or `status`: one table for each of its members that has members itself."""
    whole = schema(part)
    head = "| field | type | default | allowed | meaning |\n|---|---|---|---|---|\n"
    if part == "status":
        head = "| field | type | | allowed | meaning |\n|---|---|---|---|---|\n"
    plain = [Field(name, child, False) for name, child in whole["properties"].items() if not _has_members(child)]
    parts = [f"### `{part}`\n\n{head}{''.join(field.row() for field in plain)}"]
    for name, child in whole["properties"].items():
        if _has_members(child):
            rows = "".join(field.row() for field in fields({"properties": {name: child}}) if field.path != name)
            parts.append(f"### `{part}.{name}`\n\n{child['description']}\n\n{head}{rows}")
    return "\n".join(parts)


def _has_members(child: Mapping[str, Any]) -> bool:
    return "properties" in child or "properties" in child.get("items", {})


def refusals() -> str:
    """What the API server refuses when an object is applied, as the rules of the definition say."""
    return "".join(f"- {text}\n" for text in dict.fromkeys(_messages(schema("spec"))))


def _messages(parent: Mapping[str, Any]) -> Iterator[str]:
    for rule in parent.get("x-kubernetes-validations", ()):
        yield rule["message"]
    for child in parent.get("properties", {}).values():
        yield from _messages(child)


def columns() -> tuple[str, ...]:
    """Names of the columns of `kubectl get`, those of `-o wide` last."""
    return tuple(column["name"] for column in version()["additionalPrinterColumns"])
