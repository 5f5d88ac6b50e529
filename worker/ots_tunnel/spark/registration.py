"""The data source of one Spark application: the class of `source` with the accumulator of `occurrence`."""

from __future__ import annotations

from typing import Any

from ots_tunnel.spark.reader.occurrence import WarnWhenComplete
from ots_tunnel.spark.sessions import context_of
from ots_tunnel.spark.source import TablestoreDataSource

_known: dict[str, type[TablestoreDataSource]] = {}


def data_source_of(spark: Any) -> type[TablestoreDataSource]:
    """The class to register with a session; a session of Spark Connect has no accumulators."""
    context = context_of(spark)
    if context is None:
        return TablestoreDataSource
    application = context.applicationId
    if application not in _known:
        _known[application] = _reporting(context.accumulator({}, WarnWhenComplete()))
    return _known[application]


def _reporting(accumulator: Any) -> type[TablestoreDataSource]:
    class Reporting(TablestoreDataSource):
        """A class of its own: Spark pickles it with the accumulator, since no module has it under this name."""

        occurrences = accumulator

    return Reporting
