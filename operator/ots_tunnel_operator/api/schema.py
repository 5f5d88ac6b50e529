"""Building blocks of the API models: base class, CEL rules, list types and shared field types.

They annotate the pydantic models with keys that `crd.py` copies into the structural schema.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

#: Key of CEL rules in a structural schema.
RULES = "x-kubernetes-validations"


class ApiModel(BaseModel):
    """Base of spec and status: frozen, camelCase in JSON, described by the strings below the attributes.

    Unknown fields are ignored: the API server refuses or prunes them, and an operator that is older than the
    installed CRD must keep working.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )


def rule(expression: str, message: str, *, field: str = "", found: str = "") -> dict[str, Any]:
    """One CEL rule.

    Args:
        expression: CEL expression; true accepts the value.
        message: text of the refusal.
        field: path of the offending field, relative to the rule's own node, such as `.endTime`.
        found: CEL expression of a string that is added to the message, such as the refused value. It must not
            convert a number: the API server assumes that `string(number)` is unbounded and refuses the rule as too
            expensive.
    """
    result = {"rule": expression, "message": message}
    if found:
        result["messageExpression"] = f"'{message}: ' + {found}"
    return result | ({"fieldPath": field} if field else {})


def cel_text(text: str) -> str:
    """Escape a text for a CEL literal in single quotes, such as a regular expression."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def rules(*items: dict[str, Any]) -> dict[str, Any]:
    """Return the schema key that holds these CEL rules."""
    return {RULES: list(items)}


def immutable(name: str, found: str = "'it is ' + oldSelf + ', found ' + self") -> dict[str, Any]:
    """Return the CEL rule of an immutable field; `found` shows both values and fits a field of type string."""
    return rules(rule("self == oldSelf", f"{name} is immutable, create another object instead", found=found))


def list_map(key: str) -> dict[str, Any]:
    """Return the schema keys of a list whose items are identified by one of their fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def format_time(value: datetime) -> str:
    """Format a time as Kubernetes does: RFC 3339 in UTC with whole seconds."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


#: A point in time with a zone; whole seconds in UTC when written.
Time = Annotated[AwareDatetime, PlainSerializer(format_time, return_type=str, when_used="json")]
#: Name of another object.
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
#: A number of objects, such as channels or pods.
Count = Annotated[int, Field(ge=0, le=2_147_483_647)]
#: A number of rows or bytes.
LargeCount = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
#: A short text.
Text = Annotated[str, Field(max_length=512)]
#: Name of a table.
TableName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
