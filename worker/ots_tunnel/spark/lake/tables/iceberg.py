"""An Iceberg table in a path, or by its name in a catalog of the session.

    /lake/orders          a table in this folder, which any engine reads by its path. Spark reaches it through a catalog
                          of Hadoop's kind over the folder above, whose settings are made here
    lake.shop.orders      a table of the session's own catalog `lake`

Theory of operation. Iceberg has nothing that counts a write once, so the table tells what a query has begun, before it
is written: a property of the table has the number of the batch, and the snapshot behind which it comes. The snapshot of
the batch has query and number in its summary. A batch that comes again after a crash is found as

    its snapshot is there       it is written, and left out
    the one before is there     and not its own: it is not written
    neither is there            other programs have let both expire meanwhile. If Spark asks for the next batch, this
                                one is written: Spark goes on once it is. If it asks for this one again, nothing tells,
                                and the batch is refused

Which write is left out is decided before the write: the table has one driver that writes for a query at a time.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from ots_tunnel.errors import ConfigError, QueryRefused
from ots_tunnel.query.spelling import is_of_iceberg
from ots_tunnel.spark.lake.tables.lake_table import LakeTable, is_path
from ots_tunnel.spark.lake.tables.statements import quoted, run, settings_in, text
from ots_tunnel.spark.sessions import classic_context, has_class

#: Setting of a session without which Iceberg's statements are not known.
EXTENSION: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
#: catalog.namespace.table, with at least one namespace.
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[^.`/\s]+){2,}")
#: In the summary of a snapshot; options of a write lose their capitals.
_QUERY, _BATCH = "ots-query", "ots-batch"
_SUMMARY: Final = "spark.sql.iceberg.snapshot-property."
#: Property with the number of the batch that an application has begun, and the snapshot behind which it comes.
_BEGUN: Final = "ots-tunnel.begun."
_NO_SNAPSHOT: Final = "none"
#: Batches that have deleted rows of a file when it is written anew: with one, an hour of scattered changes would
#: rewrite a whole table.
_MANY_DELETES: Final = 10
#: Snapshots that a table keeps at most. Each is in the metadata that every commit writes anew, about a kilobyte: those
#: of a week with a batch each five seconds would be 136 MB.
_MOST_SNAPSHOTS: Final = 2000
#: Hours for which a file stays that no snapshot has; Iceberg refuses less, for the sake of writes under way.
ORPHAN_HOURS: Final = 24
#: Errors of Java where the jars of Iceberg are for another minor of Spark.
_MISFIT: Final = re.compile(r"IncompatibleClassChangeError|NoSuchMethodError|NoClassDefFoundError|AbstractMethodError")


class IcebergTable(LakeTable):
    """See the module."""

    title: ClassVar[str] = "Iceberg"
    format: ClassVar[str] = "iceberg"
    log_folder: ClassVar[str] = "metadata"
    absent: ClassVar[frozenset[str]] = frozenset(("TABLE_OR_VIEW_NOT_FOUND",))
    own_properties: ClassVar[Mapping[str, str]] = {
        "format-version": "2",
        # each commit leaves a file of metadata, which has all snapshots
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
    }
    #: A batch changes some rows of many files, which would all be written anew.
    merged_properties: ClassVar[Mapping[str, str]] = {"write.merge.mode": "merge-on-read"}

    @classmethod
    def check_path(cls, path: str) -> str:
        """See `LakeTable.check_path`; a name in a catalog is allowed as well."""
        if not is_path(path) and not _NAME.fullmatch(path):
            raise ConfigError(
                f"path: found {path!r}, allowed is an absolute path, a URL, or a name such as catalog.namespace.orders"
            )
        if "${" in path:
            # Spark puts a setting in its place, in some of the calls
            raise ConfigError(f"path: found {path!r}, allowed is one without ${{...}}")
        if is_path(path) and not path.rstrip("/").rpartition("/")[2]:
            raise ConfigError(f"path: found {path!r}, allowed is a folder below the root")
        return path

    @property
    def place(self) -> str:
        """See `LakeTable.place`."""
        return f"{self._catalog}.{self._name}"

    def check_session(self) -> None:
        """See `LakeTable.check_session`."""
        from py4j.protocol import Py4JError

        jar = f"org.apache.iceberg:iceberg-spark-runtime-{'.'.join(self.spark.version.split('.')[:2])}_2.13"
        try:
            is_known = has_class(self.spark, _CATALOG)
        except Py4JError as error:
            if not _MISFIT.search(str(error)):
                raise
            raise QueryRefused(
                f"the session: found Iceberg's jar of another minor than that of Spark {self.spark.version}, allowed "
                f"is {jar}"
            ) from error
        if not is_known or EXTENSION not in (self.spark.conf.get("spark.sql.extensions", "") or ""):
            raise QueryRefused(
                f"the session: found none of Iceberg's statements, allowed is one with the jar {jar} and "
                f"spark.sql.extensions={EXTENSION}"
            )
        self._set_catalog()

    def frame(self) -> Any:
        """See `LakeTable.frame`."""
        return self._fresh().table(self.place)

    def last_batch(self, application: str, asked: int | None = None) -> int | None:
        """See `LakeTable.last_batch`."""
        table = self._java_table()
        begun = table.properties().get(f"{_BEGUN}{application}")
        if begun is None:
            return None
        text_of_number, _, before = begun.partition(" behind ")
        number = int(text_of_number)
        is_written = _is_written(table, application, number, before)
        if is_written is None and asked == number:
            raise QueryRefused(
                f"path {self.path!r}: found batch {number} begun, and neither its snapshot nor the one before: another "
                "program has removed both, so that nothing tells whether the batch is written; allowed is a new path, "
                "checkpoint folder and tunnel"
            )
        last = number if is_written or (is_written is None and asked is not None and asked > number) else number - 1
        return None if last < 0 else last

    def append(self, rows: Any, application: str, number: int) -> None:
        """See `LakeTable.append`."""
        if not self._begin(application, number):
            return
        writer = rows.writeTo(self._fresh_place())
        for key, value in {_QUERY: application, _BATCH: str(number)}.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        writer.append()

    @contextmanager
    def once(self, application: str, number: int) -> Iterator[bool]:
        """See `LakeTable.once`."""
        if not self._begin(application, number):
            yield False
            return
        settings = {f"{_SUMMARY}{_QUERY}": application, f"{_SUMMARY}{_BATCH}": str(number)}
        with settings_in(self.spark, settings):
            yield True

    def compact(self) -> None:
        """See `LakeTable.compact`; rows that a mirror has deleted go as well, where many batches left some."""
        self._bound_snapshots()
        self._call("rewrite_data_files", f"options => map('delete-file-threshold', '{_MANY_DELETES}')")

    def clean(self, kept_hours: int) -> None:
        """See `LakeTable.clean`: old snapshots, and files that a killed program has left."""
        self._call("expire_snapshots", _older_than(kept_hours))
        self._call("remove_orphan_files", _older_than(max(kept_hours, ORPHAN_HOURS)))

    @classmethod
    def is_taken(cls, name: str) -> bool:
        """See `LakeTable.is_taken`."""
        return is_of_iceberg(name)

    @property
    def _folders(self) -> tuple[str, str]:
        """The folder above a path, and the table's own."""
        above, _, own = self.path.rstrip("/").rpartition("/")
        return above or "/", own

    @property
    def _catalog(self) -> str:
        if not is_path(self.path):
            return quoted(self.path.split(".")[0])
        return f"ots_{hashlib.sha256(self._folders[0].encode()).hexdigest()[:12]}"

    @property
    def _name(self) -> str:
        """The table in its catalog."""
        if not is_path(self.path):
            return ".".join(map(quoted, self.path.split(".")[1:]))
        return quoted(self._folders[1])

    def _set_catalog(self) -> None:
        """Make the catalog of a path; a session of a batch is a copy of the query's, made before or behind that."""
        if not is_path(self.path):
            return
        settings = {"": _CATALOG, ".type": "hadoop", ".warehouse": self._folders[0], ".cache-enabled": "false"}
        for key, value in settings.items():
            self.spark.conf.set(f"spark.sql.catalog.{self._catalog}{key}", value)

    def _fresh(self) -> Any:
        """The session, which sees what others have written: a catalog of the session's may keep tables for a while."""
        self._set_catalog()
        if not is_path(self.path):
            run(self.spark, f"REFRESH TABLE {self.place}")
        return self.spark

    def _fresh_place(self) -> str:
        self._fresh()
        return self.place

    def _java_table(self) -> Any:
        context = classic_context(self.spark)
        spark = context._jvm.org.apache.iceberg.spark.Spark3Util
        return spark.loadIcebergTable(self.spark._jsparkSession, self._fresh_place())

    def _begin(self, application: str, number: int) -> bool:
        """Tell that a batch is begun; False where it is written already."""
        last = self.last_batch(application, number)
        if last is not None and number <= last:
            return False
        snapshot = self._java_table().currentSnapshot()
        before = _NO_SNAPSHOT if snapshot is None else snapshot.snapshotId()
        self.set_property(f"{_BEGUN}{application}", f"{number} behind {before}")
        return True

    def _bound_snapshots(self) -> None:
        found = self._fresh().table(f"{self.place}.snapshots").orderBy("committed_at")
        count = found.count()
        if count > _MOST_SNAPSHOTS:
            moment = "date_format(committed_at, 'yyyy-MM-dd HH:mm:ss.SSSSSSxxx') AS moment"
            (oldest_kept,) = found.offset(count - _MOST_SNAPSHOTS).limit(1).selectExpr(moment).collect()
            self._call("expire_snapshots", f"older_than => TIMESTAMP '{oldest_kept.moment}'")

    def _check_empty(self) -> None:
        """See `LakeTable`; a catalog of Hadoop's kind keeps a table in the folder that its name makes."""
        super()._check_empty()
        parts = self.path.split(".")
        if is_path(self.path) or self.exists:
            return
        for length in range(3, len(parts)):
            above = ".".join(parts[:length])
            if IcebergTable(self.spark, above).exists:
                raise QueryRefused(
                    f"path {self.path!r}: found a place inside the table {above!r}, which removes files that it does "
                    "not know; allowed is a place beside it"
                )

    def _call(self, procedure: str, argument: str) -> None:
        run(self._fresh(), f"CALL {self._catalog}.system.{procedure}(table => {text(self._name)}, {argument})")


def _older_than(hours: int) -> str:
    moment = time.strftime("%Y-%m-%d %H:%M:%S+00:00", time.gmtime(time.time() - hours * 3600))
    return f"older_than => TIMESTAMP '{moment}'"


def _is_written(table: Any, application: str, number: int, before: str) -> bool | None:
    """Whether a batch that was begun is in a table; None where the snapshots that would tell are gone.

    Args:
        table: Java's.
        before: the snapshot behind which it comes.
    """
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        if summary.get(_QUERY) == application and summary.get(_BATCH) == str(number):
            return True
        if str(snapshot.snapshotId()) == before:
            return False
        parent = snapshot.parentId()
        if parent is None:
            return False if before == _NO_SNAPSHOT else None
        snapshot = table.snapshot(parent)
        if snapshot is None:
            return None
    return False if before == _NO_SNAPSHOT else None
