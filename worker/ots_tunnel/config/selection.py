"""Which records and columns reach the sink."""

from __future__ import annotations

from base64 import b64decode
from typing import Literal, Self

from pydantic import Field, StrictInt, StrictStr, field_validator, model_validator

from ots_tunnel.config.base import ConfigModel


class ColumnsConfig(ConfigModel):
    """Which attribute columns reach the sink, and under which names. Key columns always do, unchanged."""

    include: tuple[str, ...] = ()
    """Only these; empty means all."""
    exclude: tuple[str, ...] = ()
    """All but these."""
    rename: dict[str, str] = Field(default_factory=dict)
    """Name at the source: name at the sink."""

    @model_validator(mode="after")
    def _do_not_contradict(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("include and exclude contradict each other: allowed is one of them")
        targets = list(self.rename.values())
        for target in targets:
            if not target or targets.count(target) > 1:
                raise ValueError(f"rename: found {target!r} {targets.count(target)} times, names must differ")
        gone = sorted(set(self.rename) & set(self.exclude) or set(self.rename) - set(self.include or self.rename))
        if gone:
            raise ValueError(f"rename: {', '.join(gone)} is left out by include or exclude")
        return self


class BytesValue(ConfigModel):
    """A key value of type BINARY."""

    base64: StrictStr
    """Its bytes in base64."""

    @field_validator("base64")
    @classmethod
    def _is_base64(cls, text: str) -> str:
        b64decode(text, validate=True)
        return text

    @property
    def value(self) -> bytes:
        """Its bytes."""
        return b64decode(self.base64)


#: INTEGER, STRING or BINARY; its type has to be that of the key column.
KeyBound = StrictInt | StrictStr | BytesValue


class KeyRangeConfig(ConfigModel):
    """Rows from `begin` on up to, but not with, `end`.

    Both hold values of the first key columns in the table's order; columns that are not given are below every value.
    """

    begin: tuple[KeyBound, ...] = Field(default=(), max_length=4)
    """Empty means from the first row on."""
    end: tuple[KeyBound, ...] = Field(default=(), max_length=4)
    """Empty means up to the last row."""

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if not self.begin and not self.end:
            raise ValueError("begin and end are empty: allowed is no range at all, or at least one of them")
        return self


class FilterConfig(ConfigModel):
    """Which records reach the sink; all others count as processed."""

    actions: tuple[Literal["PUT", "UPDATE", "DELETE"], ...] = ("PUT", "UPDATE", "DELETE")
    """Kinds of change."""
    key_prefix: dict[str, str] = Field(default_factory=dict)
    """Key column: text its value has to begin with. A key column that is no text does not match."""
    key_range: KeyRangeConfig | None = None
    """Part of the table, in the order of its key."""
