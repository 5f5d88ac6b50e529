"""What the status says of applications of Spark: a query, and a copy. Pure."""

from __future__ import annotations

from ots_tunnel_operator import names
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.lag import (
    round_figure,
    round_lag,
)
from ots_tunnel_operator.assess.spark.query import Query
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.assess.spark.snapshot import COMPLETED
from ots_tunnel_operator.report import Status
from ots_tunnel_operator.times import parse_time, timestamp
from ots_tunnel_operator.world.world import World


def query_status(query: Query, world: World) -> Status | None:
    """What is known of the query; its figures only while a driver follows the tunnel."""
    if query.state is QueryState.NOT_USED or query.application is None:
        return None
    status: Status = {
        "application": names.query_name(world.resource.name),
        "state": query.application.state.value or "NEW",
    }
    if (figures := query.figures) is None or query.recorded is None:
        return status
    status["recordedTime"] = timestamp(query.recorded)
    if figures.batch_id is not None:
        status["batchId"] = figures.batch_id
    if figures.rows_per_second is not None:
        status["rowsPerSecond"] = round_figure(figures.rows_per_second)
    if figures.lag_seconds is not None:
        status["lagSeconds"] = round_lag(figures.lag_seconds)
    return status


def snapshot_status(world: World, assessment: Assessment) -> Status | None:
    """The record of a copy, with the state of its application and whether the destination is consistent."""
    recorded, lag = dict(world.resource.recorded_snapshot), assessment.answered_lag
    if not recorded:
        return None
    if (progress := assessment.snapshot.progress) is not None and progress.total is not None:
        recorded.pop("omittedCells", None)
        if progress.omitted is not None:
            recorded["omittedCells"] = progress.omitted
    if recorded.get("state") != COMPLETED:
        application = assessment.snapshot.application
        recorded.pop("state", None)
        if application is not None:
            recorded["state"] = application.state.value or "NEW"
        return recorded
    finished = parse_time(recorded.get("finishedTime"))
    if recorded.get("consistent") is not True and lag is not None and finished is not None:
        point = lag.consumed_up_to
        recorded["consistent"] = bool(lag.caught_up) or (point is not None and point > finished)
    return recorded
