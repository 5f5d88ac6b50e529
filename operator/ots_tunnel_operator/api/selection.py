"""Selection of the records and columns that reach the sink (docs/worker.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from ots_tunnel_operator.api.schema import ApiModel, rule, rules

ColumnName = Annotated[str, Field(min_length=1, max_length=255)]
_SET = {"x-kubernetes-list-type": "set"}
ColumnNames = Annotated[tuple[ColumnName, ...], Field(max_length=128, json_schema_extra=_SET)]
Action = Literal["PUT", "UPDATE", "DELETE"]


class Columns(ApiModel):
    """Attribute columns that reach the sink, and their names there; key columns always do, unchanged."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.include.size() == 0 || self.exclude.size() == 0",
                "columns.include and columns.exclude rule each other out: leave one of them empty",
                field=".exclude",
            ),
            rule(
                "!has(self.rename) || self.rename.all(name, !(name in self.exclude) && "
                "(self.include.size() == 0 || name in self.include))",
                "columns.rename names only columns that columns.include and columns.exclude let pass",
                field=".rename",
            ),
            rule(
                "!has(self.rename) || self.rename.all(one, "
                "self.rename.exists_one(other, self.rename[other] == self.rename[one]) && "
                "(self.rename[one] in self.rename || !(self.rename[one] in self.include)))",
                "columns.rename gives two columns the same name",
                field=".rename",
            ),
        )
    )

    include: ColumnNames = ()
    """Only these columns; empty means all."""
    exclude: ColumnNames = ()
    """All columns but these; not together with include."""
    rename: Annotated[dict[str, ColumnName], Field(max_length=128)] = Field(default_factory=dict)
    """New names: name at the source to name at the sink. A record with two columns of the same new name stops the
    worker."""


class KeyBound(ApiModel):
    """A value of a key column, of the column's type; exactly one member is set."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.integer), has(self.string), has(self.base64)].filter(given, given).size() == 1",
                "keyRange: each value needs exactly one member: integer, string or base64",
            )
        )
    )

    integer: Annotated[int, Field(ge=-(2**63), le=2**63 - 1, json_schema_extra={"format": "int64"})] | None = None
    """Value of a key column of type INTEGER."""
    string: Annotated[str, Field(max_length=1024)] | None = None
    """Value of a key column of type STRING."""
    base64: (
        Annotated[
            str,
            Field(max_length=1368, pattern=r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"),
        ]
        | None
    ) = None
    """Value of a key column of type BINARY, in base64."""

    def value(self) -> Any:
        """The bound as the worker's document has it."""
        if self.base64 is not None:
            return {"base64": self.base64}
        return self.string if self.integer is None else self.integer


KeyBounds = Annotated[tuple[KeyBound, ...], Field(max_length=4)]


class KeyRange(ApiModel):
    """Rows from `begin` (inclusive) to `end` (exclusive), in the order of the table's key."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.begin.size() + self.end.size() > 0",
                "filter.keyRange.begin or filter.keyRange.end is needed: leave keyRange out for all rows",
                field=".begin",
            )
        )
    )

    begin: KeyBounds = ()
    """Values of the first key columns, in the table's order; a missing column is below every value. Empty means the
    first row."""
    end: KeyBounds = ()
    """Values of the first key columns, in the table's order; a missing column is below every value. Empty means after
    the last row."""


class Filter(ApiModel):
    """Records that reach the sink; all others count as processed."""

    actions: Annotated[tuple[Action, ...], Field(min_length=1, max_length=3, json_schema_extra=_SET)] = (
        "PUT",
        "UPDATE",
        "DELETE",
    )
    """Kinds of change."""
    key_prefix: Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=4)] = Field(
        default_factory=dict
    )
    """Key column of type STRING to the prefix that its value must have."""
    key_range: KeyRange | None = None
    """Part of the table, in the order of its key."""
