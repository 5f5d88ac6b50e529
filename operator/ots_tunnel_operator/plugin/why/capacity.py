"""What to do about an object that is late: more workers, or what else limits them, from the figures of its status.
Pure."""

from __future__ import annotations

from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.spans import of
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.state import busiest
from ots_tunnel_operator.plugin.why.step import Step

#: Percentage of time in the sink from which the sink may be what limits a worker.
BUSY = 80


def capacity(ott: Ott) -> list[Step]:
    """Steps about its workers: as many again, at most one for each open channel."""
    opened, wanted = ott.number("channels", "open"), ott.wanted_workers
    look = Step("See which channels are late, and whose:", (commands.own(ott, "channels"),))
    if opened and wanted >= opened:
        shared = f"{of(wanted, 'worker')} for {of(opened, 'channel')}"
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
        return [Step(text, (commands.edit(ott),)), look]
    more = 2 * max(wanted, 1)
    if opened:
        more = min(opened, more)
        text = f"Add workers, because {wanted} share {of(opened, 'channel')}{_sink(ott)}:"
    else:
        text = f"Add workers to the {wanted}{_sink(ott)}:"
    return [Step(text, (commands.scale(ott, more),)), look]


def _sink(ott: Ott) -> str:
    busy = busiest(ott)
    if busy is None or busy < BUSY:
        return ""
    return f"; see also that the sink takes more, in which the busiest one spends {busy} % of its time"
