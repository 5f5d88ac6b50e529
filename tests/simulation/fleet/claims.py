"""Oracle of the operator's word: what the status says is true against the service, the pods and the source.

    ready       with Ready=True a worker runs, and no channel has been without an owner for long
    orphaned    with Ready=True no channel belongs to a worker that was killed
    caught up   with `caughtUp`, everything older than PATIENCE has taken effect
    replicas    `replicas` and `readyReplicas` are the numbers of pods
    channels    the numbers of channels are those of the service
    suspended   in phase Suspended no worker runs, with spec.suspend none runs for long, and then the status says so
    unobserved  while the operator cannot look, but can write, no condition claims what it would have to see
    unread      while it reaches neither source nor destination, TunnelReady and SinkReady are not True
    unasked     while no worker can be asked, neither a lag of 0 nor `caughtUp` is claimed
    rivals      of two objects on one tunnel, one has workers
    completed   with Completed=True everything up to the end time has taken effect, at once

A status is always a little late; what needs no patience is judged by `evidence`. A claim counts as wrong when it was
made and untrue in every look for PATIENCE seconds and a heartbeat timeout. What nobody can look at (unobserved, unread,
unasked) is judged after UNKNOWN_SECONDS, and Completed=True at once. A time in which the operator is dead, or cannot
reach the API server, is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ots_tunnel.model import ChannelStatus

if TYPE_CHECKING:
    from tests.simulation.fleet.fleet import Fleet

#: Seconds for which a status may be out of date.
PATIENCE = 75.0
#: Seconds after which a channel of a worker that was killed keeps the object from being Ready: two looks.
ORPHANED_SECONDS = 35.0
#: Seconds after which what nobody can look at is Unknown.
UNKNOWN_SECONDS = 100.0


def condition(status: Mapping[str, Any], kind: str) -> str:
    """Status of a condition; empty where there is none."""
    return next((one["status"] for one in status.get("conditions") or () if one["type"] == kind), "")


class Claims:
    """Judges the status in every look."""

    def __init__(self, fleet: Fleet, violate: Callable[[str, str], None]) -> None:
        self._fleet = fleet
        self._violate = violate
        self._since: dict[str, float] = {}
        self._blind: dict[str, tuple[str, float]] = {}
        self.looks = 0

    def look(self) -> None:
        """Judge the status as it is now."""
        fleet = self._fleet
        found = fleet.stored()
        if found is None or found["metadata"].get("deletionTimestamp"):
            self._since.clear()
            return
        self.looks += 1
        status = found.get("status") or {}
        if condition(status, "Completed") == "True" and (late := fleet.missing_until_end()):
            self._violate("completed", f"Completed=True, and not copied: {', '.join(late[:5])}")
        self._check_blind(status)
        if not fleet.is_operator_able:
            self._since.clear()
            return
        for name, wrong in self._claims(status).items():
            self._check(name, wrong, ORPHANED_SECONDS if name == "orphaned" else PATIENCE + fleet.scenario.timeout)

    def _check_blind(self, status: Mapping[str, Any]) -> None:
        """Judge what is claimed although the operator has not been able to look for UNKNOWN_SECONDS."""
        fleet, now = self._fleet, self._fleet.loop.now
        operator = fleet.operator.process
        is_dark = fleet.is_operator_dark and now > fleet.fates.busy_until
        # where the service cannot be looked at either, the last figures stay, marked with their time
        is_unasked = fleet.fates.busy_until < now < fleet.unreachable_until and bool(fleet.programs())
        blind = {
            "unobserved": fleet.fates.blind_since,
            "unread": 0.0 if is_dark else None,
            "unasked": 0.0 if is_unasked and not fleet.is_operator_dark else None,
        }
        for name, begun in blind.items():
            if begun is None or operator is None or fleet.strangers.is_claimed:
                self._blind.pop(name, None)
                continue
            process, since = self._blind.setdefault(name, (operator.name, now))
            since = max(since, begun)
            if process != operator.name:
                self._blind[name] = (operator.name, now)
            elif now - since > UNKNOWN_SECONDS and (wrong := _claimed_blindly(name, status)):
                self._violate(name, f"for {now - since:.0f} s nobody could look, and the status says {wrong}")

    def _claims(self, status: Mapping[str, Any]) -> dict[str, str]:
        """Claim to what is wrong about it; empty where it is true or not made."""
        is_over = condition(status, "Completed") == "True"
        return {
            "ready": "" if is_over else self._ready(status),
            "orphaned": "" if is_over else self._orphaned(status),
            "caught up": "" if is_over else self._caught_up(status),
            "replicas": self._replicas(status),
            "channels": "" if is_over else self._channels(status),
            "suspended": self._suspended(status),
            "rivals": self._fleet.strangers.rivalry(),
        }

    def _ready(self, status: Mapping[str, Any]) -> str:
        if condition(status, "Ready") != "True":
            return ""
        if not any(program.is_ready for program in self._fleet.programs()):
            return "Ready=True, and no worker is ready"
        unowned = self._fleet.unowned()
        return f"Ready=True, and without an owner are {', '.join(unowned)}" if unowned else ""

    def _orphaned(self, status: Mapping[str, Any]) -> str:
        """Ready=True while a channel belongs to a worker of the object that no longer runs."""
        if condition(status, "Ready") != "True":
            return ""
        gone = self._fleet.orphaned()
        return f"Ready=True, and dead clients own {', '.join(gone)}" if gone else ""

    def _caught_up(self, status: Mapping[str, Any]) -> str:
        if not (status.get("lag") or {}).get("caughtUp"):
            return ""
        late = self._fleet.missing_before(self._fleet.loop.now - PATIENCE)
        return f"caughtUp, and not copied: {', '.join(late[:5])}" if late else ""

    def _replicas(self, status: Mapping[str, Any]) -> str:
        ready, pods = self._fleet.ready_pods(), len(self._fleet.pods())
        if status.get("readyReplicas", 0) != ready:
            return f"readyReplicas {status.get('readyReplicas')}, and {ready} pods are ready"
        if status.get("replicas", 0) != pods:
            return f"replicas {status.get('replicas')}, and there are {pods} pods"
        return ""

    def _channels(self, status: Mapping[str, Any]) -> str:
        shown, tunnel = status.get("channels") or {}, self._fleet.tunnel()
        if shown.get("total") is None or tunnel is None:
            return ""
        open_ones = sum(channel.status is ChannelStatus.OPEN for channel in tunnel.channels.values())
        if (shown["total"], shown.get("open")) == (len(tunnel.channels), open_ones):
            return ""
        return f"{shown}, and the service has {len(tunnel.channels)}, {open_ones} of them open"

    def _suspended(self, status: Mapping[str, Any]) -> str:
        fleet, running = self._fleet, len(self._fleet.programs())
        if status.get("phase") == "Suspended" and running:
            return f"Suspended, and {running} workers run"
        if fleet.is_suspended and running:
            return f"spec.suspend, and {running} workers run"
        if fleet.is_suspended and fleet.is_at_rest and condition(status, "Suspended") != "True":
            return "spec.suspend, and no pod exists, but Suspended is not True"
        return ""

    def _check(self, name: str, wrong: str, patience: float) -> None:
        now = self._fleet.loop.now
        if not wrong:
            self._since.pop(name, None)
        elif now - self._since.setdefault(name, now) > patience:
            self._violate(name, f"for {now - self._since[name]:.0f} s: {wrong}")


def _claimed_blindly(name: str, status: Mapping[str, Any]) -> str:
    """What a status claims that needs a look; empty where it claims nothing."""
    if name == "unasked":
        lag = status.get("lag") or {}
        return f"lag {dict(lag)}" if lag.get("caughtUp") or lag.get("seconds") == 0 else ""
    if condition(status, "Completed") == "True":
        return ""
    kinds = ("TunnelReady", "SinkReady") if name == "unread" else ("Ready", "TunnelReady", "SinkReady")
    return ", ".join(f"{kind}=True" for kind in kinds if condition(status, kind) == "True")
