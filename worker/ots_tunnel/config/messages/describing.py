"""Messages about a wrong document, one clause per field: place, value found, values allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from ots_tunnel.config.messages.schema_node import SchemaNode
from ots_tunnel.config.problems import Contradiction, NotAllowed, shown

_UNKNOWN = ("extra_forbidden", "invalid_key")


def describe(error: ValidationError, model: type[BaseModel] | None = None, prefix: str = "") -> str:
    """One clause per wrong field: place, value found, values allowed, and the reason.

    Args:
        model: model of the document; without it the clauses have pydantic's words for the allowed values.
        prefix: text before every field, such as `--` for options.
    """
    node = None if model is None else SchemaNode(model)
    items = error.errors(include_url=False)
    # Pydantic also reports a list as too short if its items are wrong: that is one problem, not two.
    inner = {item["loc"][:-1] for item in items}
    return "; ".join(
        prefix + _clause(item, node) for item in items if item["type"] != "too_short" or item["loc"] not in inner
    )


def _clause(item: Mapping[str, Any], root: SchemaNode | None) -> str:
    path, node = _walk(item["loc"], root)
    where = ".".join(map(str, path))
    raised = item.get("ctx", {}).get("error")
    if isinstance(raised, Contradiction):
        where = ".".join(filter(None, (where, raised.field)))
        return f"{where}: {raised.text}" if where else raised.text
    if item["type"] in _UNKNOWN:
        parent = _walk(item["loc"][:-1], root)[1]
        names = f", allowed is {', '.join(parent.names) or 'nothing'}" if parent is not None else ""
        # The value of an unknown name is not repeated: it may be a secret.
        return f"{where}: unknown{names}"
    if node is None or (item["type"] == "value_error" and not isinstance(raised, NotAllowed)):
        message = item["msg"].removeprefix("Value error, ")
        found = "" if isinstance(item["input"], dict | list) else f", found {shown(item['input'])}"
        return f"{where or 'document'}: {message}{found}"
    found = "missing" if item["type"] == "missing" else f"found {_shown_at(node, item['input'])}"
    because = f" ({node.because})" if node.because else ""
    return f"{where or 'document'}: {found}, allowed is {node.allowed}{because}"


def _shown_at(node: SchemaNode, value: object) -> str:
    """A text in place of a mapping may be the secret that the mapping should have named."""
    if node.is_secret:
        return "another kind of value"
    return "a text" if node.is_model and isinstance(value, str) else shown(value)


def _walk(parts: Sequence[str | int], root: SchemaNode | None) -> tuple[list[str | int], SchemaNode | None]:
    """The path in the document, without pydantic's names of union members, and its schema node."""
    path: list[str | int] = []
    node = root
    for number, part in enumerate(parts):
        if node is not None and part in node.tags:
            continue
        inner = None if node is None else node.inside(part)
        if inner is not None:
            node = inner
        elif root is None or (number == len(parts) - 1 and node is not None and node.is_model):
            node = None  # an unknown name
        else:
            continue
        path.append(part)
    return path, node
