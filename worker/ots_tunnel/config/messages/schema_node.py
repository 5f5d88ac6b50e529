"""Descriptions of the allowed values of each field, derived from its type."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, Tag
from pydantic.fields import FieldInfo

from ots_tunnel.config.words import Words

#: Types with a fixed description.
_NAMES: dict[object, str] = {
    bool: "true or false",
    Path: "a path",
    SecretStr: "a text",
    datetime: "a time with a time zone, such as 2026-06-19T17:00:00+08:00",
}


@dataclass(frozen=True, slots=True)
class SchemaNode:
    """The type of one place in the document, with the metadata of its annotation."""

    annotation: Any
    metadata: tuple[Any, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values, such as `a whole number from 1 to 200`."""
        plain = self.plain
        return next((each.allowed for each in plain._words() if each.allowed), "") or plain._derived()

    @property
    def because(self) -> str:
        """The reason for the limit; empty where it is obvious."""
        return next((each.because for each in self.plain._words() if each.because), "")

    @property
    def plain(self) -> SchemaNode:
        """This node without `Annotated` and `| None` around the type."""
        origin = get_origin(self.annotation)
        if origin is Annotated:
            inner, *metadata = get_args(self.annotation)
            beside = (part for each in metadata for part in (each.metadata if isinstance(each, FieldInfo) else (each,)))
            return SchemaNode(inner, (*self.metadata, *beside)).plain
        if origin in (Union, types.UnionType):
            members = [each for each in get_args(self.annotation) if each is not type(None)]
            if len(members) == 1:
                return SchemaNode(members[0], self.metadata).plain
        return self

    @property
    def is_model(self) -> bool:
        """Whether a mapping with fixed names is allowed here."""
        return any(self._models())

    @property
    def is_secret(self) -> bool:
        """Whether messages must not repeat the value."""
        return self.plain.annotation is SecretStr

    @property
    def names(self) -> list[str]:
        """The fixed names that are allowed here."""
        return [field.alias or name for model in self._models() for name, field in model.model_fields.items()]

    @property
    def tags(self) -> set[str]:
        """Pydantic's names for the members of a union, which are not part of the document."""
        return {each.tag for member in self._members() for each in member.metadata if isinstance(each, Tag)}

    def inside(self, part: str | int) -> SchemaNode | None:
        """The place that is called `part` in this one; None if there is no such place."""
        kind = self.plain.annotation
        for model in self._models():
            for name, field in model.model_fields.items():
                if part in (field.alias, name):
                    return SchemaNode(field.annotation, tuple(field.metadata))
        if isinstance(part, int) and get_origin(kind) is tuple:
            return SchemaNode(get_args(kind)[0])
        if get_origin(kind) is dict:
            return SchemaNode(get_args(kind)[1])
        return None

    def _members(self) -> list[SchemaNode]:
        plain = self.plain
        if get_origin(plain.annotation) in (Union, types.UnionType):
            return [SchemaNode(each).plain for each in get_args(plain.annotation)]
        return [plain]

    def _models(self) -> list[type[BaseModel]]:
        return [each.annotation for each in self._members() if _is_model(each.annotation)]

    def _words(self) -> Iterator[Words]:
        return (each for each in self.metadata if isinstance(each, Words))

    def _derived(self) -> str:
        kind, origin = self.annotation, get_origin(self.annotation)
        if origin is Literal:
            return f"one of {', '.join(map(str, get_args(kind)))}"
        if origin is tuple:
            return f"a list of {self._count()}: each {SchemaNode(get_args(kind)[0]).allowed}"
        if origin is dict:
            return f"a mapping, each name to {SchemaNode(get_args(kind)[1]).allowed}"
        if _is_model(kind):
            return f"a mapping with {', '.join(self.names)}" if self.names else "an empty mapping, {}"
        if kind in (int, float):
            return f"a {'whole ' * (kind is int)}number{_range(self.metadata)}"
        if kind is str:
            like = "".join(f" like {pattern}" for pattern in _constraints(self.metadata, "pattern"))
            return "a text" + (like or " that is not empty" * (self._least_length() > 0))
        return _NAMES[kind]

    def _least_length(self) -> int:
        return max(_constraints(self.metadata, "min_length"), default=0)

    def _count(self) -> str:
        least, most = self._least_length(), _constraints(self.metadata, "max_length")
        if most:
            return f"{least} to {min(most)}"
        return f"{least} or more" if least else "any length"


def _constraints(metadata: Sequence[Any], name: str) -> list[Any]:
    """The values of one constraint, such as `ge`, in the metadata that pydantic keeps beside the type."""
    return [getattr(each, name) for each in metadata if getattr(each, name, None) is not None]


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _range(metadata: Sequence[Any]) -> str:
    above, least, most = (_constraints(metadata, name) for name in ("gt", "ge", "le"))
    if least:
        return f" from {least[0]} to {most[0]}" if most else f" from {least[0]} on"
    return "".join([*(f" above {bound}" for bound in above), *(f" up to {bound}" for bound in most)])
