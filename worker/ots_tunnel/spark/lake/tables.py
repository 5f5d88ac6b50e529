"""Statements on a Delta table by its path, in Spark's SQL: Delta's Python package fits fewer PySparks than its jars."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ots_tunnel.errors import ConfigError, QueryRefused
from ots_tunnel.spark.sessions import context_of

#: Settings of a session without which Delta's statements are not known.
EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
#: Attributes may have names with blanks, commas or dots, which Parquet's columns cannot have.
_PROPERTIES: Final = {"delta.columnMapping.mode": "name"}
_PATH: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")
_SUBSTITUTES: Final = "spark.sql.variable.substitute"
#: Delta's name for a path that has files and no table.
_NO_TABLE: Final = "DELTA_MISSING_DELTA_TABLE"
#: A value of any type, as in the change log.
VALUE: Final = "struct<integer:bigint,double:double,boolean:boolean,string:string,binary:binary>"


def classic_context(spark: Any) -> Any:
    """The SparkContext of a session.

    Raises:
        QueryRefused: it is a session of Spark Connect.
    """
    context = context_of(spark)
    if context is None:
        # a batch has no query's id there, by which Delta counts it once
        raise QueryRefused(
            "the session: found one of Spark Connect, allowed is a classic one, as of spark-submit: Connect does not "
            "tell a batch which query it is of"
        )
    return context


def check_session(spark: Any) -> None:
    """Refuse a session without Delta, or of Spark Connect.

    Raises:
        QueryRefused: says what to set.
    """
    classic_context(spark)
    if EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise QueryRefused(
            f"the session: found none of Delta's statements, allowed is one with Delta's jars, spark.sql.extensions="
            f"{EXTENSION} and spark.sql.catalog.spark_catalog={CATALOG}"
        )


def check_path(path: str) -> str:
    """The path of a table, as a statement can have it.

    Raises:
        ConfigError: a relative path: Spark takes it for a name in its catalog.
    """
    if not _PATH.match(path):
        raise ConfigError(f"path: found {path!r}, allowed is an absolute path, or a URL such as s3a://bucket/orders")
    return path


def run(spark: Any, statement: str) -> Any:
    """Run a statement as it is written; returns its rows.

    Names of attributes are in it. Spark puts settings and variables of the environment in the place of `${...}`, also
    inside of a name: a table would get a column that is called as a secret is.
    """
    before = spark.conf.get(_SUBSTITUTES, "true")
    spark.conf.set(_SUBSTITUTES, "false")
    try:
        return spark.sql(statement)
    finally:
        spark.conf.set(_SUBSTITUTES, before)


def quoted(name: str) -> str:
    """A name in a statement."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A text in a statement."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def place_of(path: str) -> str:
    """The table in a statement."""
    return f"delta.{quoted(path)}"


def ddl_of(kind: Any) -> str:
    """A type in a statement: Spark's own text has no quotes around the names of its members."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{quoted(each.name)}:{ddl_of(each.dataType)}' for each in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"array<{ddl_of(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"map<{ddl_of(kind.keyType)},{ddl_of(kind.valueType)}>"
    return str(kind.simpleString())


def exists(spark: Any, path: str) -> bool:
    """Whether there is a Delta table in a path."""
    from pyspark.errors import AnalysisException

    try:
        properties_of(spark, path)
    except AnalysisException:
        return False
    return True


def create(spark: Any, path: str, columns: Sequence[tuple[str, str]], properties: Mapping[str, str]) -> None:
    """Create a table, or find the one that the same call has created.

    Args:
        columns: names and types of the columns at first.
        properties: what tells the table from another one, beside Delta's own.

    Raises:
        QueryRefused: there is another table, or there are other files.
    """
    from pyspark.errors import AnalysisException

    wanted = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
    given = ", ".join(f"{text(key)} = {text(value)}" for key, value in {**_PROPERTIES, **properties}.items())
    try:
        run(spark, f"CREATE TABLE IF NOT EXISTS {place_of(path)} ({wanted}) USING delta TBLPROPERTIES ({given})")
        found = properties_of(spark, path)
    except AnalysisException as error:
        if _NO_TABLE not in str(error):
            raise
        raise QueryRefused(
            f"path {path!r}: found files that are no Delta table; allowed is an empty path, or the table of this source"
        ) from error
    for key, value in properties.items():
        if found.get(key) != value:
            raise QueryRefused(
                f"path {path!r}: found a Delta table with {key} {found.get(key)!r}, wanted is {value!r}; allowed is "
                "an empty path, or the table of this source"
            )


def properties_of(spark: Any, path: str) -> dict[str, str]:
    """The properties of a table."""
    return {row.key: row.value for row in run(spark, f"SHOW TBLPROPERTIES {place_of(path)}").collect()}


def set_property(spark: Any, path: str, key: str, value: str) -> None:
    """Set one property."""
    run(spark, f"ALTER TABLE {place_of(path)} SET TBLPROPERTIES ({text(key)} = {text(value)})")


def columns_of(spark: Any, path: str) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns."""
    schema = spark.read.format("delta").load(path).schema
    return columns_in(schema)


def columns_in(schema: Any) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a schema."""
    return tuple((field.name, ddl_of(field.dataType)) for field in schema.fields)


def add_columns(spark: Any, path: str, columns: Sequence[tuple[str, str]]) -> None:
    """Add columns; none is no commit."""
    if columns:
        wanted = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
        run(spark, f"ALTER TABLE {place_of(path)} ADD COLUMNS ({wanted})")
