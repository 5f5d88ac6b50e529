"""An Iceberg table in a path, or by its name in a catalog of the session.

    /lake/orders          a table in this folder, which any engine reads by its path. Spark reaches it through a catalog
                          of Hadoop's kind over the folder above, whose settings are made here
    lake.shop.orders      a table of the session's own catalog `lake`

Iceberg has nothing that counts a write once. Each snapshot of ours has the query and the number of its batch in its
summary, so the newest snapshot of a query tells its last batch. Snapshots expire, also by other programs, while a query
is idle; so the number is a property of the table as well, which is set behind the commit.

Which write is left out is decided before the write: the table has one query that writes to it at a time.
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
_LAST: Final = "ots-tunnel.batch."
#: Batches that have deleted rows of a file when it is written anew: with one, an hour of scattered changes would
#: rewrite a whole table.
_MANY_DELETES: Final = 10
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
        # a batch of a mirror changes some rows of many files, which would all be written anew
        "write.merge.mode": "merge-on-read",
        # each commit leaves a file of metadata, which has all snapshots
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "100",
    }

    @classmethod
    def check_path(cls, path: str) -> str:
        """See `LakeTable.check_path`; a name in a catalog is allowed as well."""
        if not is_path(path) and not _NAME.fullmatch(path):
            raise ConfigError(
                f"path: found {path!r}, allowed is an absolute path, a URL, or a name such as catalog.namespace.orders"
            )
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

    def last_batch(self, application: str) -> int | None:
        """See `LakeTable.last_batch`."""
        table = self._java_table()
        noted = table.properties().get(f"{_LAST}{application}")
        found = -1 if noted is None else int(noted)
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            summary = snapshot.summary()
            if summary.get(_QUERY) == application:
                found = max(found, int(summary.get(_BATCH)))
                break
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)
        return None if found < 0 else found

    def append(self, rows: Any, application: str, number: int) -> None:
        """See `LakeTable.append`."""
        if not self._is_new(application, number):
            return
        writer = rows.writeTo(self._fresh_place())
        for key, value in {_QUERY: application, _BATCH: str(number)}.items():
            writer = writer.option(f"snapshot-property.{key}", value)
        writer.append()
        self._note(application, number)

    @contextmanager
    def once(self, application: str, number: int) -> Iterator[bool]:
        """See `LakeTable.once`."""
        if not self._is_new(application, number):
            yield False
            return
        settings = {f"{_SUMMARY}{_QUERY}": application, f"{_SUMMARY}{_BATCH}": str(number)}
        with settings_in(self.spark, settings):
            yield True
        self._note(application, number)

    def compact(self) -> None:
        """See `LakeTable.compact`; rows that a mirror has deleted go as well, where many batches left some."""
        self._call("rewrite_data_files", f"options => map('delete-file-threshold', '{_MANY_DELETES}')")

    def clean(self, kept_hours: int) -> None:
        """See `LakeTable.clean`: old snapshots, and files that a killed program has left."""
        moment = time.strftime("%Y-%m-%d %H:%M:%S+00:00", time.gmtime(time.time() - kept_hours * 3600))
        older = f"older_than => TIMESTAMP '{moment}'"
        self._call("expire_snapshots", older)
        self._call("remove_orphan_files", older)

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

    def _is_new(self, application: str, number: int) -> bool:
        last = self.last_batch(application)
        return last is None or number > last

    def _note(self, application: str, number: int) -> None:
        self.set_property(f"{_LAST}{application}", str(number))

    def _call(self, procedure: str, argument: str) -> None:
        run(self._fresh(), f"CALL {self._catalog}.system.{procedure}(table => {text(self._name)}, {argument})")
