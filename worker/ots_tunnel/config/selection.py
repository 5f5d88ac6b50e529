"""Selection of the records and columns that reach the sink."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Annotated, Any, Literal, Self

from ots_tunnel.config.base import ConfigModel, Name
from ots_tunnel.config.modelling import (
    Discriminator,
    Field,
    StrictInt,
    StrictStr,
    Tag,
    field_validator,
    model_validator,
)
from ots_tunnel.config.problems import NOT_ALLOWED, Contradiction, NotAllowed, shown
from ots_tunnel.config.words import Words


class ColumnsConfig(ConfigModel):
    """Attribute columns that reach the sink, and their names there. Key columns always do, unchanged."""

    include: tuple[Name, ...] = ()
    """Only these columns; empty means all."""
    exclude: tuple[Name, ...] = ()
    """All columns but these."""
    rename: dict[Name, Name] = Field(default_factory=dict)
    """Name at the source: name at the sink. A record with two columns of the same new name stops the worker."""

    @model_validator(mode="after")
    def _do_not_contradict(self) -> Self:
        if self.include and self.exclude:
            raise Contradiction("exclude", "found with include, allowed is one of them")
        gone = sorted(set(self.rename) & set(self.exclude) or set(self.rename) - set(self.include or self.rename))
        if gone:
            raise Contradiction("rename", f"{', '.join(gone)}: left out by {'include' if self.include else 'exclude'}")
        targets = [self.rename.get(name, name) for name in {*self.include, *self.rename}]
        for target in sorted(targets):
            if targets.count(target) > 1:
                raise Contradiction("rename", f"{targets.count(target)} columns are called {target!r} after it")
        return self


class BytesValue(ConfigModel):
    """A key value of type BINARY."""

    base64: Annotated[StrictStr, Words("a text in base64")]
    """The bytes in base64."""

    @field_validator("base64")
    @classmethod
    def _is_base64(cls, text: str) -> str:
        try:
            b64decode(text, validate=True)
        except (Base64Error, ValueError):
            raise NotAllowed from None
        return text

    @property
    def value(self) -> bytes:
        """The bytes."""
        return b64decode(self.base64)


def _type_of(value: Any) -> str | None:
    match value:
        case bool():
            return None
        case int():
            return "INTEGER"
        case str():
            return "STRING"
        case dict() | BytesValue():
            return "BINARY"
    return None


#: Bound of one key column, of the column's type.
KeyBound = Annotated[
    Annotated[StrictInt, Field(ge=-(2**63), lt=2**63), Tag("INTEGER")]
    | Annotated[StrictStr, Tag("STRING")]
    | Annotated[BytesValue, Tag("BINARY")],
    Discriminator(_type_of, custom_error_type=NOT_ALLOWED, custom_error_message="not allowed"),
    Words("a whole number of 64 bits, a text, or {base64: ...} for bytes, as the key column is"),
]


def _ordered(bound: int | str | BytesValue) -> tuple[str, Any]:
    """Type and sort key of a bound: texts are compared by their bytes."""
    if isinstance(bound, BytesValue):
        return "BINARY", bound.value
    return ("STRING", bound.encode()) if isinstance(bound, str) else ("INTEGER", bound)


def _text(bound: int | str | BytesValue) -> str:
    return f"{{base64: {bound.base64}}}" if isinstance(bound, BytesValue) else shown(bound)


class KeyRangeConfig(ConfigModel):
    """Rows from `begin` (inclusive) to `end` (exclusive).

    Both hold values of the first key columns in the table's order; a missing column is below every value.
    """

    begin: tuple[KeyBound, ...] = Field(default=(), max_length=4)
    """Empty means the first row."""
    end: tuple[KeyBound, ...] = Field(default=(), max_length=4)
    """Empty means after the last row."""

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if not self.begin and not self.end:
            raise Contradiction("begin", "empty as end is, allowed is at least one of them, or no range at all")
        if self.begin and self.end:
            self._begins_before_its_end()
        return self

    def _begins_before_its_end(self) -> None:
        for begin, end in zip(self.begin, self.end, strict=False):
            (kind, least), (other_kind, most) = _ordered(begin), _ordered(end)
            if kind != other_kind:
                raise Contradiction("end", f"found {other_kind} beside {kind} of begin, a key column has one type")
            if least != most:
                if least > most:
                    raise Contradiction("end", f"found {_text(end)}, allowed is above {_text(begin)} of begin")
                return
        if len(self.end) <= len(self.begin):
            raise Contradiction("end", "nothing is between begin and it, allowed is above begin")


class FilterConfig(ConfigModel):
    """Records that reach the sink; all others count as processed."""

    actions: tuple[Literal["PUT", "UPDATE", "DELETE"], ...] = Field(default=("PUT", "UPDATE", "DELETE"), min_length=1)
    """Kinds of change."""
    key_prefix: Annotated[
        dict[Name, str], Words("a mapping, each key column of type STRING to the prefix of its value, such as {pk: a}")
    ] = Field(default_factory=dict)
    """Key column of type STRING: prefix of its value."""
    key_range: KeyRangeConfig | None = None
    """Part of the table, in the order of its key."""
