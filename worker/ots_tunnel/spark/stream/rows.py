"""Rows of a stream: those of the sink `files` in Parquet, as Arrow and as Spark has them (docs/sinks.md).

The change log without declared columns, typed rows with them. Both come from the compiled twin where there is one.
Functions import pyarrow when they run, because the driver pickles their callers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ots_tunnel.errors import ConfigError, QueryRefused, SinkRejected
from ots_tunnel.model import ChannelId, KeyValue
from ots_tunnel.protocol.record import Record

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ots_tunnel.sinks.files.rows.declared import Declared
    from ots_tunnel.sinks.files.rows.row_form import RowForm

#: Bytes of records in an Arrow batch: a task has nothing else to do meanwhile, and Spark takes each batch apart anew.
BATCH_BYTES: Final = 4 << 20
#: A value of each type of key column, by its name in Spark.
KEY_SAMPLES: Final[dict[str, KeyValue]] = {"bigint": 0, "string": "", "binary": b""}
#: The types of declared columns by their names in Spark.
_KINDS: Final = {
    "bigint": "integer",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "binary": "binary",
}


@dataclass(frozen=True, slots=True)
class StreamRows:
    """The form of a query's rows.

    Args:
        key: name and type of each column of the key.
        columns: declared attributes; None for the change log.
    """

    key: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...] | None

    @classmethod
    def of(cls, schema: StructType, columns: tuple[tuple[str, str], ...] | None) -> StreamRows:
        """The form whose schema this is: the key's columns are in it.

        Raises:
            ConfigError: another schema, which no query can have.
        """
        kinds = {field.name: field.dataType for field in schema.fields}
        names = getattr(kinds.get("key"), "fields", None)
        key = tuple((field.name, field.dataType.simpleString()) for field in names or ())
        if key and all(kind in KEY_SAMPLES for _, kind in key):
            rows = cls(key, columns)
            if rows.schema().simpleString() == schema.simpleString():
                return rows
        raise ConfigError(
            f"the schema: found {schema.simpleString()}, allowed is that of load() without .schema(...): option "
            "'columns' names the attributes"
        )

    def schema(self) -> StructType:
        """The schema in Spark."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._arrow())

    def batches(self, records: Sequence[Record], channel_id: ChannelId) -> Iterator[pa.RecordBatch]:
        """The rows of one channel's records, in their order.

        Raises:
            CodecError: a record is malformed.
        """
        from pyspark.sql.pandas.types import to_arrow_schema

        # Spark takes batches of exactly its own schema
        wanted = to_arrow_schema(self.schema())
        for batch in self._form().batches(records, channel_id, self._arrow(), BATCH_BYTES):
            yield batch if wanted.equals(batch.schema) else batch.cast(wanted)

    def check(self, records: Sequence[Record]) -> None:
        """Refuse records that have no place in the declared columns: it would fail every task.

        Raises:
            QueryRefused: a value has another type than its column; names column, types and key.
        """
        from ots_tunnel.sinks.files.rows.refusals import refusals, rejection

        if self.columns is None:
            return
        refused = refusals(records, self._declared())
        if refused:
            error: SinkRejected = rejection(refused)
            raise QueryRefused(
                f"{error.message}; leave the column out of option 'columns', and its values are in column 'others'"
            )

    def _arrow(self) -> pa.Schema:
        return self._form().schema(tuple((name, KEY_SAMPLES[kind]) for name, kind in self.key))

    def _form(self) -> RowForm:
        from ots_tunnel.sinks.files.rows.row_form import ChangeLogForm, TypedForm

        return ChangeLogForm() if self.columns is None else TypedForm(self._declared())

    def _declared(self) -> Declared:
        from ots_tunnel.sinks.files.rows.declared import Declared

        return Declared({name: _KINDS[kind] for name, kind in self.columns or ()})
