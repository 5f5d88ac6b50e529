"""How our pydantic models carry what Kubernetes wants to know: rules, list kinds, times.

`crd.py` turns the models into a structural schema; everything here only decorates them for it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

#: Key of CEL rules in a structural schema.
RULES = "x-kubernetes-validations"


class ApiModel(BaseModel):
    """Base of spec and status: frozen, camelCase outside, described by the strings below the attributes.

    Unknown fields are ignored here: the API server refuses or prunes them, and an operator that is older than
    the CRD must go on.
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )


def rule(expression: str, message: str, *, field: str = "", found: str = "") -> dict[str, Any]:
    """One CEL rule.

    Args:
        expression: true for what is accepted.
        message: what a refusal says.
        field: path below the rule's own place that the refusal names, such as `.endTime`.
        found: CEL expression of a string that is added to the message: the value that does not fit. Strings only:
            the API server takes `string(number)` for unbounded and refuses the rule as too expensive.
    """
    result = {"rule": expression, "message": message}
    if found:
        result["messageExpression"] = f"'{message}: ' + {found}"
    return result | ({"fieldPath": field} if field else {})


def rules(*items: dict[str, Any]) -> dict[str, Any]:
    """The schema key that holds CEL rules."""
    return {RULES: list(items)}


def immutable(name: str, found: str = "'it is ' + oldSelf + ', found ' + self") -> dict[str, Any]:
    """A field that keeps its first value; `found` tells both, and is written for strings."""
    return rules(rule("self == oldSelf", f"{name} is immutable, create another object instead", found=found))


def list_map(key: str) -> dict[str, Any]:
    """A list whose items are told apart by one of their fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def format_time(value: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as Kubernetes writes times."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


#: A point in time with a zone; whole seconds in UTC when written.
Time = Annotated[AwareDatetime, PlainSerializer(format_time, return_type=str, when_used="json")]
#: Name of another object.
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
#: A number of things.
Count = Annotated[int, Field(ge=0, le=2_147_483_647)]
#: A number of rows or bytes.
LargeCount = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
