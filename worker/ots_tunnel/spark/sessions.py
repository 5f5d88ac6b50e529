"""Classic sessions of Spark, and those of Spark Connect, which have no context."""

from __future__ import annotations

from typing import Any


def context_of(spark: Any) -> Any:
    """The SparkContext of a classic session; None of a session of Spark Connect."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except (AttributeError, PySparkException):
        return None
