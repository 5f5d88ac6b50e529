"""Which engines an object uses, as CEL over its spec, and the blocks that have no meaning without one of them."""

from __future__ import annotations

from typing import Final

from ots_tunnel_operator.api.schema import rule

#: Whether workers copy existing rows or follow changes.
WORKERS_USED: Final = (
    "(!has(self.source.tunnel) || self.source.tunnel.type != 'Stream' && self.engine.baseData == 'Workers' || "
    "self.source.tunnel.type != 'BaseData' && self.engine.stream == 'Workers')"
)
#: Whether Spark copies existing rows from a snapshot; a query that follows changes has them before these.
SPARK_COPIES: Final = (
    "(has(self.source.tunnel) && self.source.tunnel.type != 'Stream' && self.engine.baseData == 'Spark' && "
    "(self.source.tunnel.type == 'BaseData' || self.engine.stream != 'Spark'))"
)
#: Whether a query of Spark follows changes, and with type BaseAndStream brings existing rows.
BY_QUERY: Final = "self.engine.stream == 'Spark'"

ENGINES_RULES: Final = (
    rule(
        f"!has(self.workers) || {WORKERS_USED}",
        "workers has no meaning where no engine in use (engine.baseData, engine.stream) is Workers: leave it out",
        field=".workers",
    ),
    rule(
        f"!has(self.autoscaling) || self.autoscaling.mode == 'Disabled' || {WORKERS_USED}",
        "autoscaling.mode other than Disabled has no meaning where no engine in use (engine.baseData, "
        "engine.stream) is Workers: leave it out",
        field=".autoscaling.mode",
        found="'found ' + self.autoscaling.mode",
    ),
    rule(
        f"!has(self.monitoring.podMonitor) || !self.monitoring.podMonitor || {WORKERS_USED}",
        "monitoring.podMonitor has no meaning where no engine in use (engine.baseData, engine.stream) is "
        "Workers: leave it out",
        field=".monitoring.podMonitor",
    ),
    rule(
        f"!has(self.spark) || {SPARK_COPIES} || {BY_QUERY}",
        "spark has no meaning where no engine in use (engine.baseData, engine.stream) is Spark: leave it out",
        field=".spark",
    ),
)
