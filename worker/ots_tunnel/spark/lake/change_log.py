"""A Delta table that has each change once: the sink of a stream of changes.

    changes.writeStream.foreachBatch(ChangeLog("/lake/orders_log")).option("checkpointLocation", ...).start()

Rows are those of the stream (docs/sinks.md). With the stream's option `columns` a row has an attribute without a column
in the map `others`; `growth` says whether the table gets a column for it. Without the option rows have all cells in one
column, and nothing grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ots_tunnel.errors import QueryRefused
from ots_tunnel.spark.lake.attributes import refuse, seen
from ots_tunnel.spark.lake.growth import ADD, REFUSE, check_growth, new_columns
from ots_tunnel.spark.lake.names import lacking
from ots_tunnel.spark.lake.projection import attribute_columns, rest_of, value_in
from ots_tunnel.spark.lake.replays import note_of
from ots_tunnel.spark.lake.tables import add_columns, check_path, check_session, columns_in, columns_of, create, exists
from ots_tunnel.spark.lake.transactions import check_folder, query_of
from ots_tunnel.spark.lake.upkeep import Upkeep

_OTHERS: Final = "others"
_KIND: Final = "ots-tunnel.kind"


@dataclass(slots=True)
class ChangeLog:
    """A function for `writeStream.foreachBatch`.

    Args:
        path: of the table, which the first batch creates: absolute, or a URL.
        growth: what happens to attributes without a column: `add`, `map` or `refuse` (`growth`).
        upkeep: compaction and cleaning between batches; None is none.

    Raises:
        ConfigError: a relative path, or another word for `growth`.
    """

    path: str
    growth: str = ADD
    upkeep: Upkeep | None = None
    _checked: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        check_path(self.path)
        check_growth(self.growth)

    def __call__(self, batch: Any, batch_id: int) -> None:
        """Append the changes of a batch, unless the table has them.

        Raises:
            ConfigError: a session without Delta, another table, an old checkpoint folder, or an attribute that
                `growth` refuses.
        """
        spark = batch.sparkSession
        query = query_of(spark)
        if self._checked != query:
            self._check(batch, query, batch_id)
        batch.persist()
        try:
            rows = self._rows(spark, batch)
            options = {"txnAppId": query, "txnVersion": str(batch_id), "userMetadata": note_of(query, batch_id)}
            rows.write.format("delta").mode("append").options(**options).save(self.path)
        finally:
            batch.unpersist()
        if self.upkeep is not None:
            self.upkeep.run(spark, self.path)

    def _check(self, batch: Any, query: str, batch_id: int) -> None:
        spark = batch.sparkSession
        check_session(spark)
        if batch_id > 0 and not exists(spark, self.path):
            raise QueryRefused(
                f"path {self.path!r}: found no Delta table, but {batch_id} batches of this query were written to one; "
                "allowed is that table, or a new checkpoint folder, whose changes begin at the tunnel's checkpoints"
            )
        create(spark, self.path, columns_in(batch.schema), {_KIND: "changes"})
        check_folder(spark, self.path, query, batch_id)
        self._checked = query

    def _rows(self, spark: Any, batch: Any) -> Any:
        """The batch with the columns of the table, which grows before."""
        present = columns_of(spark, self.path)
        grown = columns_in(batch.schema)
        missing = lacking(self.path, present, grown)
        if missing and self.growth != ADD:
            raise QueryRefused(_misfit(self.path, missing[0], present))
        add_columns(spark, self.path, missing)
        if _OTHERS not in batch.columns:
            return batch
        if self.growth == ADD:
            add_columns(
                spark, self.path, new_columns([name for name, _ in columns_of(spark, self.path)], seen(batch, _OTHERS))
            )
        added = [column for column in columns_of(spark, self.path) if column not in grown]
        # Delta leaves NULL in a column that the frame lacks
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
