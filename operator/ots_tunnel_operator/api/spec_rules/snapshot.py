"""What Spark cannot do when it copies existing rows from a snapshot."""

from __future__ import annotations

from typing import Final

from ots_tunnel_operator.api.schema import rule
from ots_tunnel_operator.api.sink import sink_kind
from ots_tunnel_operator.api.spec_rules.engines import SPARK_COPIES

SNAPSHOT_RULES: Final = (
    rule(
        f"has(self.sink.tablestore) || !{SPARK_COPIES}",
        "sink.tablestore is the only sink that engine.baseData Spark writes",
        field=".sink",
        found=f"'found ' + {sink_kind('self.sink')}",
    ),
    rule(
        f"!{SPARK_COPIES} || !has(self.delivery.columns) && !has(self.delivery.filter) && "
        "self.delivery.onPermanentError == 'Fail'",
        "delivery.columns, delivery.filter and delivery.onPermanentError are not for engine.baseData Spark, "
        "which copies whole rows: leave them out",
        field=".delivery",
    ),
    rule(
        f"!{SPARK_COPIES} || "
        "!(has(self.source.rateLimit) && self.source.rateLimit.rowsPerSecondPerWorker > 0) && "
        "!(has(self.delivery.rateLimit) && self.delivery.rateLimit.rowsPerSecondPerWorker > 0)",
        "source.rateLimit and delivery.rateLimit do not limit engine.baseData Spark: leave them out, and limit "
        "spark.executor instead",
        field=".source.rateLimit",
    ),
)
