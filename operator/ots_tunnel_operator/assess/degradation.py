"""Problems of a running object, in addition to those that prevent progress (`preflight`) and to those of its pods
(`worker_pods.trouble`). Pure.

Messages contain no figure that changes by itself, so that a steadily degraded object causes no write.
"""

from __future__ import annotations

from ots_tunnel_operator.assess.completion import was_completed
from ots_tunnel_operator.assess.lag import Lag, round_lag
from ots_tunnel_operator.assess.progress import find_standstill, find_unreachable
from ots_tunnel_operator.assess.spark.query import Query
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.snapshot import Snapshot
from ots_tunnel_operator.assess.spark.standstill import find_idle_copy, find_idle_query
from ots_tunnel_operator.diagnosis import shortened
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.world import World

#: Seconds for which a write fails before the sink is blamed: a single failure passes by itself.
FAILING_SECONDS = 60.0
#: Foreign clients named in a message.
SHOWN_CLIENTS = 5


def find_degradation(
    world: World, snapshot: Snapshot, query: Query, lag: Lag | None, retention_ahead: int | None
) -> Problem | None:
    """The most severe degradation; None without one.

    Args:
        world: what was observed.
        snapshot: of this world.
        query: of this world.
        lag: of the tunnel.
        retention_ahead: percent of the retention in use for certain, now or at the end of the base phase; None is
            unknown.
    """
    found = (
        _foreign_client(world),
        find_sink_errors(world),
        _channel_error(world),
        find_unreachable(world),
        find_standstill(world),
        find_idle_copy(world, snapshot),
        find_idle_query(world, query),
        _retention_at_risk(world, query, retention_ahead),
        _high_lag(world, lag),
    )
    return next((problem for problem in found if problem is not None), None)


def _foreign_client(world: World) -> Problem | None:
    """Foreign clients, seen in two polls at least one heartbeat timeout apart (docs/architecture.md 3.7)."""
    source, timeout = world.resource.spec.source, world.resource.spec.worker_settings.heartbeat_timeout_seconds
    ids = sorted(client for client, since in world.foreign_since.items() if world.now - since >= timeout)
    # who reads on behind the end takes nothing from an object that has everything
    if not ids or was_completed(world):
        return None
    remedy = "stop them, or give this object a tunnel of its own"
    if source.stream is not None:
        remedy = "stop them once this object is to read every shard, or give it a table of leases of its own"
    return Problem(
        Reason.FOREIGN_CLIENT,
        f"{source.field}: clients that are no workers of this "
        f"object consume it too ({', '.join(ids[:SHOWN_CLIENTS])}): {remedy}",
    )


def _channel_error(world: World) -> Problem | None:
    for pod in sorted(world.pods, key=lambda pod: pod.name):
        if pod.report is None:
            continue
        error = pod.report.error or next((channel.error for channel in pod.report.channels if channel.error), None)
        if error:
            return Problem(
                Reason.CHANNEL_ERRORS,
                f"pod {pod.name}: {shortened(error)}: see its log; nothing is dropped, the "
                f"{world.resource.spec.source.part} resumes when it can",
            )
    return None


def find_sink_errors(world: World) -> Problem | None:
    """A sink that takes no writes, as its workers report it; None while none of them has failed for long."""
    failing = [
        (pod.name, pod.report.sink)
        for pod in world.pods
        if pod.report is not None
        and pod.report.sink is not None
        and (pod.report.sink.failing_seconds or 0.0) >= FAILING_SECONDS
    ]
    if not failing:
        return None
    name, sink = min(failing, key=lambda found: found[0])
    what = "writes to the sink fail and are" if sink.has_answered else "the sink has taken nothing yet, and is"
    return Problem(
        Reason.SINK_ERRORS,
        f"pod {name}: {what} tried again ({shortened(sink.error)}): see that it runs, that the workers reach it and "
        f"that it takes their writes; nothing is dropped",
        ("SinkReady",),
    )


def _retention_at_risk(world: World, query: Query, used: int | None) -> Problem | None:
    """Warn by the forecast for the end of the base phase, where there is one (docs/architecture.md 3.3)."""
    limit = world.resource.spec.monitoring.retention_warning_percent
    if used is None or used < limit:
        return None
    rest = "find out what slows the sink, or extend the stream's retention"
    more = f"add workers or executors, {_rate_limits(world)}{rest}"
    return Problem(
        Reason.RETENTION_AT_RISK,
        f"changes not consumed yet use, or will use when existing rows are copied, at least "
        f"spec.monitoring.retentionWarningPercent {limit} of the time for which table "
        f"{world.resource.spec.source.table!r} keeps its stream; beyond 100 percent changes are lost: "
        f"{_nothing_runs(world) or _no_driver(query) or more}",
    )


def _no_driver(query: Query) -> str:
    """What to do where a query has no driver that reads; empty where it has one, or workers follow the changes."""
    if query.state in (QueryState.NOT_USED, QueryState.FOLLOWING, QueryState.SILENT):
        return ""
    return f"no driver follows the tunnel ({query.message}): let it run, or extend the stream's retention"


def _nothing_runs(world: World) -> str:
    """What to do where nothing consumes because the spec says so; empty where it does not."""
    spec = world.resource.spec
    if spec.suspend:
        return "spec.suspend is true, so that nothing is consumed: set it to false"
    return "" if spec.replicas else "spec.replicas is 0, so that nothing is consumed: set it to 1 or more"


def _rate_limits(world: World) -> str:
    """What to do about the rate limits that the spec sets, with a comma at its end; empty without one."""
    spec = world.resource.spec
    limits = {"spec.source.rateLimit": spec.source.rate_limit, "spec.delivery.rateLimit": spec.delivery.rate_limit}
    fields = [field for field, limit in limits.items() if limit is not None and limit.rows_per_second_per_worker]
    return f"raise {' or '.join(fields)}, " if fields else ""


def _high_lag(world: World, lag: Lag | None) -> Problem | None:
    spec = world.resource.spec
    # one channel that is known to be late is enough, whatever is unknown of the others
    if lag is None or lag.caught_up or round_lag(lag.known_seconds or 0) <= spec.lag_limit_seconds:
        return None
    held = f" and spec.sink.files.maxFileSeconds {spec.held_seconds}" if spec.held_seconds else ""
    limit = f"spec.monitoring.lagDegradedSeconds {spec.monitoring.lag_degraded_seconds}{held}"
    part = spec.source.part
    more = f"add workers up to the number of {part}s, {_rate_limits(world)}or find out what slows the sink"
    if spec.uses_query:
        more = "give spark.driver and spark.executor more room, or find out what slows the query"
    return Problem(Reason.LAG_HIGH, f"the slowest {part} is more than {limit} behind: {_nothing_runs(world) or more}")
