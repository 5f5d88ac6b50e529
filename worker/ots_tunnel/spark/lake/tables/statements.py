"""Statements in Spark's SQL: they reach a table by its path, and need no package of a format beside its jars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

_SUBSTITUTES: Final = "spark.sql.variable.substitute"
#: A value of any type, as in the change log.
VALUE: Final = "struct<integer:bigint,double:double,boolean:boolean,string:string,binary:binary>"


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


@contextmanager
def settings_in(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """The session has these settings in the context, and none of them behind it."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def quoted(name: str) -> str:
    """A name in a statement."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A text in a statement."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


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


def columns_in(schema: Any) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a schema."""
    return tuple((field.name, ddl_of(field.dataType)) for field in schema.fields)
