"""What to do about an object that is late: let it run where nothing does, more workers, or what else limits them, from
the figures of its status. Pure."""

from __future__ import annotations

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.spans import count, of
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.state import busiest
from ots_tunnel_operator.plugin.why.step import Step

#: Percentage of time in the sink, or of a rate limit, from which that may be what limits a worker.
BUSY = 80


def capacity(ott: Ott) -> list[Step]:
    """Steps about what consumes: that there is something, then workers: as many again, at most one for each open
    channel."""
    if ott.is_suspended:
        text = "Resume it: changes only wait while it is paused, however many workers it wants:"
        return [Step(text, (commands.own(ott, "resume"),))]
    if ott.is_copied_by_spark:
        text = "Give the copy by Spark more executors (spec.spark.executor.instances), or see that the sink takes more:"
        return [Step(text, (commands.edit(ott),))]
    if ott.by_query:
        text = "Give the query's driver and executors more room in spec.spark, or see what slows it:"
        return [Step(text, (commands.edit(ott), commands.logs(ott, "stream")))]
    if not ott.wanted_workers:
        return [Step("Give it workers, because it has none:", (commands.scale(ott, 1),))]
    opened, wanted = ott.number("channels", "open"), ott.wanted_workers
    look = Step(f"See which {ott.part}s are late, and whose:", (commands.own(ott, "channels"),))
    limit = _rate_limit(ott)
    if limit and opened and wanted >= opened:
        return [*limit, look]
    if opened and wanted >= opened:
        shared = f"{of(wanted, 'worker')} for {of(opened, ott.part)}"
        text = (
            f"More workers cannot help, there are {shared}: split the table's partitions, or see what slows the sink:"
        )
        return [Step(text, (commands.logs(ott, "worker"),)), look]
    if ott.scaling_mode == "Auto":
        most = (ott.spec.get("autoscaling") or {}).get("maxReplicas", wanted)
        text = (
            f"The operator decides the number of workers, {wanted} at present and at most {most}"
            f"{_sink(ott)}: raise spec.autoscaling.maxReplicas where that is too few:"
        )
        return [*limit, Step(text, (commands.edit(ott),)), look]
    more = 2 * wanted
    if opened:
        more = min(opened, more)
        text = f"Add workers, because {wanted} share {of(opened, ott.part)}{_sink(ott)}:"
    else:
        text = f"Add workers to the {wanted}{_sink(ott)}:"
    return [*limit, Step(text, (commands.scale(ott, more),)), look]


def _rate_limit(ott: Ott) -> list[Step]:
    """The step about a rate limit that the workers use up; empty where they do not."""
    rate, limit = ott.number("throughput", "rowsPerSecond"), ott.number("throughput", "limitRowsPerSecond")
    if rate is None or not limit or 100 * rate < BUSY * limit:
        return []
    parts = ((part, (ott.spec.get(part) or {}).get("rateLimit") or {}) for part in ("source", "delivery"))
    fields = " or ".join(f"spec.{part}.rateLimit" for part, found in parts if found.get("rowsPerSecondPerWorker"))
    text = f"Raise {fields}, because its workers read {count(rate)} of the {count(limit)} rows/s that are allowed:"
    return [Step(text, (commands.edit(ott),))]


def _sink(ott: Ott) -> str:
    busy = busiest(ott)
    if busy is None or busy < BUSY:
        return ""
    return f"; see also that the sink takes more, in which the busiest one spends {busy} % of its time"
