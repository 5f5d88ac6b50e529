"""What a change log and a mirror need of a table, whatever its format.

A batch of a query counts once under a number. A batch that comes again after a crash has the same number and the same
records, so a table that tells the last number of a query can leave it out. How it tells that is the format's.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ots_tunnel.errors import ConfigError, QueryRefused
from ots_tunnel.spark.lake.tables.statements import columns_in, quoted, run, text
from ots_tunnel.spark.sessions import classic_context

_PATH: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")
#: What a folder with a table has, by format.
MARKS: Final = ("_delta_log", "metadata/version-hint.text")


def is_path(path: str) -> bool:
    """Whether a text is an absolute path or a URL; Spark takes another one for a name in its catalog."""
    return _PATH.match(path) is not None


@dataclass(frozen=True)
class LakeTable(ABC):
    """A table in a place, which need not exist.

    Args:
        spark: the session that runs the statements; a batch has one of its own.
        path: the place.
    """

    spark: Any
    path: str

    #: Name of the format, for messages.
    title: ClassVar[str]
    #: The format in a statement.
    format: ClassVar[str]
    #: Properties that each table of ours begins with.
    own_properties: ClassVar[Mapping[str, str]]
    #: Those of a table into which batches are merged, besides.
    merged_properties: ClassVar[Mapping[str, str]]
    #: The folder of the table's log, which a program that was killed may have left without a table.
    log_folder: ClassVar[str]
    #: Conditions of Spark's errors that say that there is no table.
    absent: ClassVar[frozenset[str]]

    @classmethod
    def check_path(cls, path: str) -> str:
        """The place of a table, as a statement can have it.

        Raises:
            ConfigError: a relative path.
        """
        if not is_path(path):
            raise ConfigError(
                f"path: found {path!r}, allowed is an absolute path, or a URL such as s3a://bucket/orders"
            )
        return path

    @property
    @abstractmethod
    def place(self) -> str:
        """The table in a statement."""

    @abstractmethod
    def check_session(self) -> None:
        """Refuse a session that cannot write this format.

        Raises:
            QueryRefused: it lacks jars or settings; says what to set. Or it is one of Spark Connect.
        """

    @abstractmethod
    def frame(self) -> Any:
        """The rows as they are now."""

    @abstractmethod
    def last_batch(self, application: str, asked: int | None = None) -> int | None:
        """The last number under which an application has written; None if it has written nothing.

        Args:
            asked: the batch that Spark asks for: it has seen the one before written.

        Raises:
            QueryRefused: nothing tells whether the batch that is asked for is written.
        """

    @abstractmethod
    def append(self, rows: Any, application: str, number: int) -> None:
        """Append rows as one commit, unless the table has this number or a higher one of the application."""

    @abstractmethod
    def once(self, application: str, number: int) -> AbstractContextManager[bool]:
        """Makes the statements in its context count once under a number; gives False where the table has it.

        The session has to be that of a batch: the settings that are made reach no other write then.
        """

    @abstractmethod
    def compact(self) -> None:
        """Join small files."""

    @abstractmethod
    def clean(self, kept_hours: int) -> None:
        """Remove files that the table has not needed for some time."""

    @classmethod
    @abstractmethod
    def is_taken(cls, name: str) -> bool:
        """Whether the format needs a name itself, so that no table that it merges into has such a column."""

    @classmethod
    def may_be_taken(cls, name: str) -> bool:
        """Whether an attribute of the name that is found is to get no column."""
        return cls.is_taken(name)

    @property
    def exists(self) -> bool:
        """Whether there is a table of this format."""
        from pyspark.errors import AnalysisException

        try:
            self.properties()
        except AnalysisException as error:
            if error.getCondition() not in self.absent:
                raise
            return False
        return True

    def create(
        self, columns: Sequence[tuple[str, str]], properties: Mapping[str, str], *, is_merged: bool = False
    ) -> None:
        """Create the table, or find the one that the same call has created.

        Args:
            columns: names and types of the columns at first.
            properties: what tells the table from another one, beside the format's own.
            is_merged: batches are merged into it, and not appended.

        Raises:
            QueryRefused: there is another table, or there are other files.
        """
        self._check_empty()
        wanted = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
        first = {**self.own_properties, **(self.merged_properties if is_merged else {}), **properties}
        given = ", ".join(f"{text(key)} = {text(value)}" for key, value in first.items())
        run(
            self.spark,
            f"CREATE TABLE IF NOT EXISTS {self.place} ({wanted}) USING {self.format} TBLPROPERTIES ({given})",
        )
        found = self.properties()
        for key, value in properties.items():
            if found.get(key) != value:
                raise QueryRefused(
                    f"path {self.path!r}: found a table of {self.title} with {key} {found.get(key)!r}, wanted is "
                    f"{value!r}; allowed is an empty path, or the table of this source"
                )

    def properties(self) -> dict[str, str]:
        """The properties of the table."""
        return {row.key: row.value for row in run(self.spark, f"SHOW TBLPROPERTIES {self.place}").collect()}

    def set_property(self, key: str, value: str) -> None:
        """Set one property."""
        run(self.spark, f"ALTER TABLE {self.place} SET TBLPROPERTIES ({text(key)} = {text(value)})")

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns."""
        return columns_in(self.frame().schema)

    def add_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """Add columns; none is no commit."""
        if columns:
            wanted = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
            run(self.spark, f"ALTER TABLE {self.place} ADD COLUMNS ({wanted})")

    def _check_empty(self) -> None:
        """Refuse a folder with files and no table, or inside another table; a catalog has places of its own."""
        if not is_path(self.path) or self.exists:
            return
        hadoop = classic_context(self.spark)._jvm.org.apache.hadoop.fs
        folder = hadoop.Path(self.path)
        files = folder.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf())
        found = [each.getPath().getName() for each in files.listStatus(folder)] if files.exists(folder) else []
        if set(found) - {self.log_folder}:
            raise QueryRefused(
                f"path {self.path!r}: found files that are no table of {self.title}; allowed is an empty path, or the "
                "table of this source"
            )
        above = folder.getParent()
        while above is not None:
            # the cleaning of that table would remove the files of this one
            if any(files.exists(hadoop.Path(above, mark)) for mark in MARKS):
                raise QueryRefused(
                    f"path {self.path!r}: found a place inside the table {above.toString()!r}, which removes files "
                    "that it does not know; allowed is a place beside it"
                )
            above = above.getParent()
