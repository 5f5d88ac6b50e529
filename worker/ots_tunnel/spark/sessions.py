"""Classic sessions of Spark, and those of Spark Connect, which have no context."""

from __future__ import annotations

from typing import Any

from ots_tunnel.errors import QueryRefused


def context_of(spark: Any) -> Any:
    """The SparkContext of a classic session; None of a session of Spark Connect."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except (AttributeError, PySparkException):
        return None


def classic_context(spark: Any) -> Any:
    """The SparkContext of a session.

    Raises:
        QueryRefused: it is a session of Spark Connect.
    """
    context = context_of(spark)
    if context is None:
        # a batch has no query's id there, by which a table counts it once
        raise QueryRefused(
            "the session: found one of Spark Connect, allowed is a classic one, as of spark-submit: Connect does not "
            "tell a batch which query it is of"
        )
    return context


def has_class(spark: Any, name: str) -> bool:
    """Whether Java knows a class.

    Raises:
        QueryRefused: see `classic_context`.
    """
    return classic_context(spark)._jsc.hadoopConfiguration().getClassByNameOrNull(name) is not None
