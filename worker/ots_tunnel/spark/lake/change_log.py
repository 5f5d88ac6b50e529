"""A table that has each change once: the sink of a stream of changes.

    changes.writeStream.foreachBatch(ChangeLog("/lake/orders_log")).option("checkpointLocation", ...).start()

Rows are those of the stream (docs/sinks.md). With the stream's option `columns` a row has an attribute without a column
in the map `others`; `growth` says whether the table gets a column for it. Without the option rows have all cells in one
column, and nothing grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ots_tunnel.errors import QueryRefused
from ots_tunnel.spark.lake.attributes import refuse, seen
from ots_tunnel.spark.lake.growth import ADD, MAP, REFUSE, check_growth, new_columns
from ots_tunnel.spark.lake.names import lacking
from ots_tunnel.spark.lake.projection import attribute_columns, rest_of, value_in
from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.lake.tables.places import Delta, place_of
from ots_tunnel.spark.lake.tables.statements import columns_in
from ots_tunnel.spark.lake.transactions import check_folder, query_of
from ots_tunnel.spark.lake.upkeep import Upkeep

_OTHERS: Final = "others"
_KIND: Final = "ots-tunnel.kind"
_SOURCE: Final = "ots-tunnel.source"


@dataclass(slots=True)
class ChangeLog:
    """A function for `writeStream.foreachBatch`.

    Args:
        place: of the table, which the first batch creates; a text is the path of a Delta table (`tables.places`).
        growth: what happens to attributes without a column: `add`, `map` or `refuse` (`growth`).
        upkeep: compaction and cleaning between batches; None is none.
        source: names whose changes these are, such as instance, table and tunnel. The table keeps it, and a table of
            another source is refused: in a bucket two drivers would write over each other's commits. Empty names none.

    Raises:
        ConfigError: a relative path, or another word for `growth`.
    """

    place: str | Delta
    growth: str = ADD
    upkeep: Upkeep | None = None
    source: str = ""
    #: The query and the number of the last batch that was written.
    _written: tuple[str, int] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        place_of(self.place)
        check_growth(self.growth)

    def __call__(self, batch: Any, batch_id: int) -> None:
        """Append the changes of a batch, unless the table has them.

        Raises:
            ConfigError: a session without the format, another table, an old checkpoint folder, or an attribute that
                `growth` refuses.
        """
        table = place_of(self.place).seen_by(batch.sparkSession)
        query = query_of(table.spark)
        if self._written != (query, batch_id - 1):
            self._check(table, batch, query, batch_id)
        with self._kept(batch):
            table.append(self._rows(table, batch), query, batch_id)
        self._written = query, batch_id
        if self.upkeep is not None:
            self.upkeep.run(table)

    @contextmanager
    def _kept(self, batch: Any) -> Iterator[None]:
        """Keep the rows of a batch where they are looked at before they are written: to make them again costs more."""
        if self.growth == MAP or _OTHERS not in batch.columns:
            yield
            return
        batch.persist()
        try:
            yield
        finally:
            batch.unpersist()

    def _check(self, table: LakeTable, batch: Any, query: str, batch_id: int) -> None:
        table.check_session()
        if batch_id > 0 and not table.exists:
            raise QueryRefused(
                f"path {table.path!r}: found no table of {table.title}, but {batch_id} batches of this query were "
                "written to one; allowed is that table, or a new checkpoint folder, whose changes begin at the "
                "tunnel's checkpoints"
            )
        # with the source: of two that create the table at once, the later one finds it
        named = {_SOURCE: self.source} if self.source and not table.exists else {}
        table.create(columns_in(batch.schema), {_KIND: "changes", **named})
        has_source = bool(named) or self._has_source(table)
        check_folder(table, query, batch_id)
        # not before: a query that is refused would have taken the log of another one
        if not has_source:
            table.set_property(_SOURCE, self.source)

    def _has_source(self, table: LakeTable) -> bool:
        """Whether the table tells of this source, or none is named; refuse one with the changes of another."""
        if not self.source:
            return True
        found = table.properties().get(_SOURCE)
        if found is not None and found != self.source:
            raise QueryRefused(
                f"path {table.path!r}: found a change log of {found!r}, wanted is one of {self.source!r}; allowed is "
                f"an empty path, or the table of this source, whose property {_SOURCE} tells it: unset it where it is "
                "wrong"
            )
        return found is not None

    def _rows(self, table: LakeTable, batch: Any) -> Any:
        """The batch with the columns of the table, which grows before."""
        present = table.columns()
        grown = columns_in(batch.schema)
        missing = lacking(table.path, present, grown)
        if missing and self.growth != ADD:
            raise QueryRefused(_misfit(table.path, missing[0], present))
        table.add_columns(missing)
        if _OTHERS not in batch.columns:
            return batch
        if self.growth == ADD:
            names = [name for name, _ in table.columns()]
            table.add_columns(new_columns(names, seen(batch, _OTHERS, names), table.may_be_taken))
        added = [column for column in table.columns() if column not in grown]
        rows = _moved(batch, attribute_columns(added))
        if self.growth == REFUSE:
            refuse(rows, _OTHERS)
        return rows


def _moved(batch: Any, columns: Sequence[tuple[str, str]]) -> Any:
    """The batch with columns of their own for these attributes."""
    from pyspark.sql import functions as F

    others = F.col(_OTHERS)
    added = [value_in(others, name, kind).alias(name) for name, kind in columns]
    kept = [
        rest_of(others, columns).alias(name) if name == _OTHERS else F.col("`" + name.replace("`", "``") + "`")
        for name in batch.columns
    ]
    return batch.select(*kept, *added)


def _misfit(path: str, missing: tuple[str, str], present: Sequence[tuple[str, str]]) -> str:
    found = " ".join(missing)
    return (
        f"option 'columns': found {found}, but table {path!r} has {', '.join(' '.join(each) for each in present)}; "
        "allowed are its columns, and with growth 'add' further ones"
    )
