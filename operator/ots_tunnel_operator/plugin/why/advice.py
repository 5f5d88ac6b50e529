"""The next thing to do about an object, with the exact commands. Pure.

docs/operations.md explains each reason at length; here is what to type. A command names the object, its tunnel and its
table; only what the cluster does not know, such as the folder with the keys, is left to fill in.
"""

from __future__ import annotations

import re

from ots_tunnel_operator import names
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from ots_tunnel_operator.plugin.why.secrets import WriteSecrets
from ots_tunnel_operator.plugin.why.step import Step
from ots_tunnel_operator.reasons import Reason

#: Begin of what a deletion waits for, where that is a Secret.
_ABOUT_A_SECRET = re.compile(r": spec\.[\w.]+\.secretRef\.name ")


def next_steps(ott: Ott, gone: Serving | None = None) -> list[Step]:
    """What to do now; a single step that says so where that is nothing.

    Args:
        gone: the Lease of the operator that serves the object, where no process renews it; None where one does, or
            where that is not known.
    """
    if gone is not None:
        return _unserved(ott, gone)
    if ott.deleted is not None:
        return _deleted(ott)
    if not ott.conditions:
        return [_unseen(ott)]
    problem = ott.problem
    if problem is not None:
        return steps_for(ott, problem.reason, problem.message)
    return _without_problem(ott)


def _without_problem(ott: Ott) -> list[Step]:
    completed = ott.condition("Completed")
    if completed.is_true and completed.reason == Reason.COMPLETED_WITH_LOSS:
        return steps_for(ott, completed.reason, completed.message)
    if completed.is_true:
        return [Step("Nothing: delete it when you do not need its status any more.")]
    if ott.is_suspended:
        return [Step("Resume it when you want changes to flow again:", (commands.own(ott, "resume"),))]
    if ott.is_asleep and ott.condition("Ready").is_true:
        return [Step("Nothing: a worker starts by itself. One starts at once after any edit of the spec.")]
    if not ott.wanted_workers and not ott.is_asleep:
        return [Step("Give it workers:", (commands.scale(ott, 1),))]
    progressing = ott.condition("Progressing")
    if progressing.is_true and progressing.reason == Reason.ROLLOUT_STUCK:
        return steps_for(ott, progressing.reason, progressing.message)
    if not ott.condition("Ready").is_true or progressing.is_true:
        return [Step("Nothing but to wait; watch it:", (commands.own(ott, "top"),))]
    return [Step("Nothing.")]


def steps_for(ott: Ott, reason: str, message: str = "") -> list[Step]:
    """What to do about a reason; where there is nothing to type, the condition's message has it.

    Args:
        reason: of a condition or an event.
        message: of the same; it says which Secret is meant.
    """
    remedy = REMEDIES.get(reason)
    if remedy is None:
        return [Step(message or f"Read the paragraph {reason} of docs/operations.md.")]
    return remedy.steps(ott, message) if isinstance(remedy, WriteSecrets) else remedy(ott)


def _unserved(ott: Ott, gone: Serving) -> list[Step]:
    """An operator has to run before anything else becomes of the object; its status may be as old as the last one."""
    text = "See why no operator runs by that Lease: until one does, nothing is repaired, scaled, deleted or reported:"
    namespace, _, name = gone.lease.partition("/")
    look = Step(text, (commands.operator_pods(namespace), f"kubectl -n {namespace} get lease {name}"))
    if ott.deleted is None or names.FINALIZER not in ott.finalizers:
        return [look]
    left = "table of leases" if ott.leases else "tunnel"
    rest = f"Where none is to run again, release the object by hand; its workers end, and its {left} stays:"
    return [look, Step(rest, (commands.release(ott),))]


def _deleted(ott: Ott) -> list[Step]:
    look = Step("See what its deletion waits for:", (commands.events(ott),))
    if names.FINALIZER not in ott.finalizers:
        held = "".join(f" (finalizer {each})" for each in ott.finalizers)
        return [Step(f"Nothing of the operator holds it any more: let what does{held} go on.")]
    text = "Or release it at once, without waiting for its workers:"
    if ott.spec.get("deletionPolicy") == "Delete":
        text = "Or release it at once; a tunnel that is not deleted by then is yours to delete:"
    return [*(_of_secret(ott) or [look]), Step(text, (commands.force_delete(ott),))]


def _of_secret(ott: Ott) -> list[Step]:
    """How to write the Secret that a deletion waits for; empty where it waits for something else."""
    message = ott.condition("Ready").message
    # one that names the Secret later is about the rights of its key, not about the Secret
    if not _ABOUT_A_SECRET.search(message):
        return []
    return steps_for(ott, Reason.SECRET_NOT_FOUND if "no such Secret" in message else Reason.KEY_MISSING, message)


def _unseen(ott: Ott) -> Step:
    if ott.lease is None:
        return Step("See that an operator runs and serves this namespace:", ("kubectl get leases,pods -A",))
    namespace, name = ott.lease
    return Step(
        "See whether that operator runs. If it is gone for good, take its name from the object; another takes over:",
        (
            f"kubectl -n {namespace} get lease {name}",
            commands.kubectl(ott, f"annotate ott {ott.name} ots-tunnel.dev/operator-"),
        ),
    )
