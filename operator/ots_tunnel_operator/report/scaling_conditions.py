"""The conditions of the autoscaler (docs/architecture.md 6.3). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel_operator.assess.scaling.scaling import Scaling
from ots_tunnel_operator.autoscale.limit import Limit
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.report.conditions import OF_AUTOSCALING, ConditionValue
from ots_tunnel_operator.world.world import World

_UNSEEN = "one worker stays, because the operator cannot look for changes itself"
_BLIND = "the lag is not known: the number of workers stays"

#: Limits that last, with the reason and the text of each, which has a place for the word for a channel; the others pass
#: by themselves.
_LASTING = {
    Limit.MAX: (Reason.AT_MAX, "the load asks for more workers than spec.autoscaling.maxReplicas"),
    Limit.CHANNELS: (Reason.CHANNEL_BOUND, "the load asks for more workers than there are {part}s to read"),
    Limit.INEFFECTIVE: (
        Reason.INEFFECTIVE,
        "more workers did not help and were taken back: status.autoscaling.lastDecision has the figures and the "
        "slowest {part}",
    ),
}


def scaling_conditions(world: World, scaling: Scaling) -> Mapping[str, ConditionValue]:
    """Both conditions; none where the object never had spec.autoscaling (`report.conditions.OF_AUTOSCALING`)."""
    stored = {item.get("type") for item in world.resource.status.get("conditions") or ()}
    if world.resource.spec.autoscaling is None and stored.isdisjoint(OF_AUTOSCALING):
        return {}
    return {"ScalingActive": scaling_active(world, scaling), "ScalingLimited": scaling_limited(world, scaling)}


def scaling_active(world: World, scaling: Scaling) -> ConditionValue:
    """Whether the number of workers is computed from figures that are known."""
    if world.resource.spec.scaling_mode == "Disabled":
        return ConditionValue(False, Reason.SCALING_DISABLED, "spec.autoscaling.mode is Disabled")
    if scaling.stopped:
        return ConditionValue(False, Reason.SCALING_STOPPED, scaling.stopped)
    before = _recorded(world)
    if scaling.is_blind or (scaling.misses and before == "False"):
        return ConditionValue(False, Reason.METRICS_UNAVAILABLE, _BLIND)
    if scaling.misses and before != "True":
        return ConditionValue(None, Reason.METRICS_UNAVAILABLE, _BLIND)
    return ConditionValue(True, Reason.VALID_METRIC_FOUND)


def scaling_limited(world: World, scaling: Scaling) -> ConditionValue:
    """Whether something that lasts keeps the number of workers from the one that the load asks for."""
    if scaling.foreign:
        return ConditionValue(True, Reason.REPLICAS_MANAGED, scaling.foreign)
    if scaling.limit is Limit.PEEK_FAILED:
        return ConditionValue(True, Reason.PEEK_FAILED, f"{_UNSEEN}: {world.peek_failure}")
    if scaling.limit in _LASTING:
        reason, text = _LASTING[scaling.limit]
        return ConditionValue(True, reason, text.format(part=world.resource.spec.source.part))
    return ConditionValue(False, Reason.AS_EXPECTED)


def _recorded(world: World) -> str:
    """The status of ScalingActive as stored; empty without one."""
    conditions = world.resource.status.get("conditions") or ()
    return next((str(item.get("status")) for item in conditions if item.get("type") == "ScalingActive"), "")
