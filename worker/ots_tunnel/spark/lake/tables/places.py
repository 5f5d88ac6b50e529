"""Where a table is, and in which format: what a program gives a change log or a mirror.

ChangeLog("/lake/orders_log")               a text is the path of a Delta table
ChangeLog(Iceberg("/lake/orders_log"))      an Iceberg table in a folder
ChangeLog(Iceberg("lake.shop.orders_log"))  an Iceberg table of the session's catalog `lake`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ots_tunnel.spark.lake.tables.delta import DeltaTable
from ots_tunnel.spark.lake.tables.iceberg import IcebergTable
from ots_tunnel.spark.lake.tables.lake_table import LakeTable


@dataclass(frozen=True, slots=True)
class Delta:
    """The absolute path, or the URL, of a Delta table.

    Raises:
        ConfigError: another text.
    """

    path: str
    kind: ClassVar[type[LakeTable]] = DeltaTable

    def __post_init__(self) -> None:
        self.kind.check_path(self.path)

    def seen_by(self, spark: Any) -> LakeTable:
        """The table for a session."""
        return self.kind(spark, self.path)


@dataclass(frozen=True, slots=True)
class Iceberg(Delta):
    """The absolute path, the URL, or the name with its catalog of an Iceberg table.

    Raises:
        ConfigError: another text.
    """

    kind: ClassVar[type[LakeTable]] = IcebergTable


def place_of(given: str | Delta) -> Delta:
    """The place that is given, of which a text is one of Delta.

    Raises:
        ConfigError: see `Delta`.
    """
    return Delta(given) if isinstance(given, str) else given
