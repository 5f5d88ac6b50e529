"""A table of a lake that equals a table: its existing rows, and then the changes of a tunnel on top of them.

    mirror = Mirror(spark, {"endpoint": ..., "instance": ..., "table": ..., "tunnel": ...}, "/lake/orders")
    mirror.prepare()
    mirror.start("/lake/orders_checkpoint", processingTime="5 seconds").awaitTermination()

Theory of operation. The tunnel comes first, so that every change from then on is in it. A tunnel of type Stream has
the changes alone: `prepare` writes the existing rows as one commit, and records it, before the stream begins. One of
type BaseAndStream has the existing rows as well, and gives them before any change.

A row of the snapshot may be newer than changes that follow: it was read while the table changed. Those changes are
applied all the same, in their order, and after the last of them the row is right (`fold`).

A batch of the stream is one MERGE: the stored rows of its keys and the changes are folded to one row for each key,
which replaces the stored one, or removes it. It counts once (`tables`). Nothing else may write to the
table; compaction may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.query.spelling import OTHERS, VERSIONS
from ots_tunnel.spark.lake.attributes import refuse, seen
from ots_tunnel.spark.lake.checkpoints import check_age
from ots_tunnel.spark.lake.growth import ADD, REFUSE, check_growth, new_columns
from ots_tunnel.spark.lake.merging import merge
from ots_tunnel.spark.lake.mirror_rows import changed_rows, existing_rows, gone, in_columns
from ots_tunnel.spark.lake.names import check_names, check_taken, check_types, lacking
from ots_tunnel.spark.lake.readiness import Source, check_table, look_at, wait_until_unmoved
from ots_tunnel.spark.lake.tables.lake_table import LakeTable
from ots_tunnel.spark.lake.tables.places import Delta, place_of
from ots_tunnel.spark.lake.tables.statements import VALUE, columns_in
from ots_tunnel.spark.lake.transactions import check_folder, query_of
from ots_tunnel.spark.lake.upkeep import Upkeep
from ots_tunnel.spark.reader.ddl import parse_columns
from ots_tunnel.spark.reader.schemas import key_columns
from ots_tunnel.spark.stream.options import StreamOptions

_KIND, _TUNNEL, _KEY, _EXISTING = (
    "ots-tunnel.kind",
    "ots-tunnel.tunnel",
    "ots-tunnel.key",
    "ots-tunnel.snapshot",
)
_COMPLETE: Final = "complete"


class Mirror:
    """One mirror; see the module.

    Args:
        spark: a session with the table's format and the format `ots`.
        source: options of the stream but `columns`: endpoint, instance, table, tunnel, credentials.
        place: of the mirror; a text is the path of a Delta table (`tables.places`).
        columns: attributes that have a column from the start, as DDL.
        growth: what happens to others: `add`, `map` or `refuse` (`growth`).
        has_versions: go on with a table that keeps several versions.
        expires: go on with a table that has a time to live.
        upkeep: compaction and cleaning between batches; None is none.

    Raises:
        ConfigError: an option or argument is not valid; names it.
    """

    def __init__(
        self,
        spark: Any,
        source: Mapping[str, str],
        place: str | Delta,
        *,
        columns: str = "",
        growth: str = ADD,
        has_versions: bool = False,
        expires: bool = False,
        upkeep: Upkeep | None = None,
    ) -> None:
        self._spark = spark
        self._options = StreamOptions.parse(source)
        if self._options.columns is not None:
            raise ConfigError("option 'columns': found in the source of a mirror, allowed is the mirror's argument")
        self._given = dict(source)
        self._place = place_of(place)
        self._path = self._place.path
        self._columns = parse_columns(columns) if columns else ()
        self._growth = check_growth(growth)
        self._has_versions = has_versions
        self._expires = expires
        self._upkeep = upkeep
        self._key: tuple[str, ...] = ()
        #: The query and the number of the last batch that was written.
        self._written: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"Mirror({self._options.place.table} to {self._path})"

    def prepare(self) -> None:
        """Create the table, and write the existing rows where no tunnel has them; a second call changes nothing.

        Raises:
            ConfigError: a session without the table's format or of Spark Connect, another table in the path, or a
                source that no mirror can equal.
            TunnelError: the service does not answer, or refuses.
        """
        table = self._place.seen_by(self._spark)
        table.check_session()
        source = look_at(self._options)
        check_table(source.table, has_versions=self._has_versions, expires=self._expires)
        self._create(table, source)
        # where the table has no record of them, rows are missing that the tunnel has given away
        if table.properties().get(_EXISTING) != _COMPLETE:
            wait_until_unmoved(self._options, self._path)
            if source.needs_snapshot:
                self._snapshot(table, source)
            table.set_property(_EXISTING, _COMPLETE)

    def start(self, checkpoint: str, **trigger: Any) -> Any:
        """Follow the changes; returns Spark's query.

        Args:
            checkpoint: folder of the query.
            trigger: arguments of `DataStreamWriter.trigger`, such as `processingTime="5 seconds"`.

        Raises:
            ConfigError: `prepare` was not called. QueryRefused: the folder is older than the table.
        """
        if not self._key:
            raise ConfigError("start: found no table, allowed after prepare()")
        check_age(self._place.seen_by(self._spark), checkpoint)
        changes = self._spark.readStream.format("ots").options(**self._given).load()
        writer = changes.writeStream.foreachBatch(self.apply).option("checkpointLocation", checkpoint)
        return writer.trigger(**(trigger or {"processingTime": "5 seconds"})).start()

    def apply(self, batch: Any, batch_id: int) -> None:
        """Merge the changes of a batch, unless the table has them: a function for `foreachBatch`.

        Raises:
            ConfigError: a session of Spark Connect, an old checkpoint folder, a column that is none of the mirror's, or
                an attribute that `growth` refuses.
        """
        table = self._place.seen_by(batch.sparkSession)
        query = query_of(table.spark)
        if self._written != (query, batch_id - 1):
            check_folder(table, query, batch_id)
        stored = table.frame()
        check_types(self._path, columns_in(stored.schema), (OTHERS, VERSIONS))
        batch.persist()
        rows = changed_rows(batch, stored, self._key).persist()
        try:
            columns = self._grow(table, rows)
            found = in_columns(rows, self._key, columns, gone())
            with table.once(query, batch_id) as is_new:
                if is_new:
                    merge(table, found, [name for name, _ in columns], self._key)
        finally:
            rows.unpersist()
            batch.unpersist()
        self._written = query, batch_id
        if self._upkeep is not None:
            self._upkeep.run(table)

    def _create(self, table: LakeTable, source: Source) -> None:
        key = key_columns(source.table)
        names, more = [name for name, _ in key], [name for name, _ in self._columns]
        check_names(names, (OTHERS, VERSIONS), more)
        # one of an earlier release may have such a key, and no marks, which need most of the names
        if not table.exists:
            check_taken(table.title, table.is_taken, names, more)
        own = [(OTHERS, f"map<string,{VALUE}>"), (VERSIONS, "map<string,bigint>")]
        properties = {_KIND: "mirror", _TUNNEL: source.tunnel_id, _KEY: ", ".join(" ".join(one) for one in key)}
        table.create([*key, *self._columns, *own], properties, is_merged=True)
        # a later call may name more columns than the one that has created the table
        present = table.columns()
        check_types(self._path, present, (OTHERS, VERSIONS))
        missing = lacking(self._path, present, self._columns)
        check_taken(table.title, table.is_taken, (), [name for name, _ in missing])
        table.add_columns(missing)
        self._key = tuple(names)

    def _snapshot(self, table: LakeTable, source: Source) -> None:
        rows = existing_rows(self._spark, self._given, key_columns(source.table))
        if self._growth == ADD:
            from pyspark import StorageLevel

            # names are only known at the end, and the table must not be read twice: it changes
            rows = rows.persist(StorageLevel.DISK_ONLY)
        try:
            columns = self._grow(table, rows)
            table.append(in_columns(rows, self._key, columns), f"ots-tunnel/snapshot/{source.tunnel_id}", 0)
        finally:
            rows.unpersist()

    def _grow(self, table: LakeTable, rows: Any) -> Sequence[tuple[str, str]]:
        """The table's columns, after those that these rows add."""
        present = table.columns()
        if self._growth == ADD:
            names = [name for name, _ in present]
            table.add_columns(new_columns(names, seen(rows, "row", names), table.may_be_taken))
            present = table.columns()
        elif self._growth == REFUSE:
            refuse(in_columns(rows, self._key, present), OTHERS)
        return present
