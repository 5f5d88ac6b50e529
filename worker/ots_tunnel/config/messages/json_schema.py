"""The JSON schema of the worker's document, by which editors complete and check it.

It refuses unknown names, wrong kinds of values and values out of range. What depends on several settings, such as a
timeout that has to exceed an interval, is checked by `load_config` alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ots_tunnel.config.document import WorkerConfig
from ots_tunnel.config.messages.field_texts import attribute_docstrings
from ots_tunnel.config.messages.schema_node import SchemaNode
from ots_tunnel.config.sinks import SinkConfig

#: The dialect that the schema is written in.
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def document_schema() -> dict[str, Any]:
    """The schema, with a description of every setting."""
    schema = WorkerConfig.model_json_schema(by_alias=True, schema_generator=_Described)
    return {"$schema": DIALECT, **schema, "title": "Document of an ots-tunnel worker"}


class _Described(GenerateJsonSchema):
    """Adds to each setting its documentation and the allowed values."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never: a title would be the name again, in other letters."""
        return False

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """The schema of one section."""
        model: type[BaseModel] = schema["cls"]
        made = super().model_schema(schema)
        made.pop("title", None)
        for name, text in _texts(model):
            made["properties"][name]["description"] = text
        if model is SinkConfig:
            made |= {"minProperties": 1, "maxProperties": 1}
        return made


def _texts(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Every setting of a section with its description."""
    documented: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            documented |= attribute_docstrings(each)
    for name, field in model.model_fields.items():
        node = SchemaNode(field.annotation, tuple(field.metadata)).plain
        allowed = "" if node.is_model else f"Allowed: {node.allowed}."
        if text := " ".join(filter(None, (documented.get(name), allowed))):
            yield field.alias or name, text
