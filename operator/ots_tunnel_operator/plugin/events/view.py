"""The view of `kubectl ott events`: what happened, in order of time, and the way out of what still holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ots_tunnel_operator import names
from ots_tunnel_operator.plugin.events.belonging import Event, own_events
from ots_tunnel_operator.plugin.events.folding import Told, folded
from ots_tunnel_operator.plugin.flags import with_flags
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.text.spans import of, words
from ots_tunnel_operator.plugin.why import commands
from ots_tunnel_operator.plugin.why.advice import next_steps, steps_for
from ots_tunnel_operator.plugin.why.remedies import REMEDIES
from ots_tunnel_operator.plugin.why.step import Step

#: Seconds after which a child's warning no longer counts as present: one that lasts is repeated within 5 minutes.
PRESENT_SECONDS = 600.0
#: Reason of the event about a deletion that waits.
_DELAYED = "DeletionDelayed"
#: Reason of a child's warning -> what it means and what to do; the message has the cause.
_CHILDREN: Mapping[str, str] = {
    "FailedScheduling": "No node takes the pod: give it room, or correct workers.podTemplate:",
    "FailedCreate": "The API server refuses the pod: see quotas and admission, or correct workers.podTemplate:",
    "FailedMount": "A volume cannot be mounted: create the Secret or the claim that the message names:",
    "Failed": "A container does not start: correct the image, or the right to pull it:",
    "BackOff": "A container fails or its image cannot be pulled, again and again: read its log:",
    "Unhealthy": "A worker does not answer its probe in time: read its log:",
}


def events_lines(
    ott: Ott, events: Iterable[Event], screen: Screen, now: float, *, flags: Sequence[str] = ()
) -> list[str]:
    """A headline, a line for each event, and what to do about warnings that still hold.

    Args:
        events: of the object's namespace.
        flags: kubectl's own, for the commands that are shown.
    """
    found = folded(own_events(ott, events))
    lines = screen.sentences(with_flags(_headline(ott, found), flags), indent="")
    if found:
        lines.append("")
    width = max((len(_ago(told, now)) for told in found), default=0)
    for told in found:
        first = f"{_ago(told, now).rjust(width)}  "
        shown = screen.sentences(with_flags(_sentence(told, now), flags), indent=" " * len(first), first=first)
        lines += [screen.paint(line, "warn" if told.is_warning else "") for line in shown]
    return lines + _ways_out(ott, found, screen, now, flags)


def _headline(ott: Ott, found: Sequence[Told]) -> str:
    name = f"{ott.namespace}/{ott.name}"
    if not found:
        return (
            f"{name}: no events of it and its children are kept, by default Kubernetes keeps them for an hour; what "
            f"was decided before that: {commands.own(ott, 'why')}"
        )
    warnings = sum(told.is_warning for told in found)
    some = f", {of(warnings, 'warning')} among them" if warnings else ""
    return f"{name}: {of(len(found), 'event')} of it and its children{some}; the last is at the end."


def _ago(told: Told, now: float) -> str:
    return f"{words(now - told.last)} ago"


def _sentence(told: Told, now: float) -> str:
    """Reason, whose it is, how often, and the message."""
    text = told.reason
    if not told.is_own:
        text += (
            f" of {told.kind} {min(told.objects)}"
            if len(told.objects) == 1
            else f" of {len(told.objects)} {told.kind}s"
        )
    if told.count > 1:
        text += f" ({told.count} times since {words(now - told.first)} ago)"
    return f"{text}: {told.text}" if told.message else text


def _ways_out(ott: Ott, found: Sequence[Told], screen: Screen, now: float, flags: Sequence[str]) -> list[str]:
    lines: list[str] = []
    said: set[str] = set()
    for told in reversed(found):
        if not told.is_warning or told.reason in said:
            continue
        said.add(told.reason)
        steps = list(_steps(ott, told, now))
        if steps:
            lines += ["", screen.paint(f"About {told.reason}", "dim")]
        for step in steps:
            lines += screen.sentences(with_flags(step.text, flags))
            # a command is never broken, so that it can be copied
            lines += [f"    {screen.paint(with_flags(command, flags), 'bold')}" for command in step.commands]
    return lines


def _steps(ott: Ott, told: Told, now: float) -> Iterator[Step]:
    if told.is_own:
        if told.reason == _DELAYED and ott.deleted is not None:
            # but for the one that leads here
            yield from (step for step in next_steps(ott) if commands.events(ott) not in step.commands)
        if told.reason not in REMEDIES:
            return
        if _holds(ott, told.reason):
            yield from steps_for(ott, told.reason, told.text)
        else:
            yield Step("Nothing: no condition has this reason any more.")
    elif told.reason in _CHILDREN and now - told.last < PRESENT_SECONDS:
        yield Step(_CHILDREN[told.reason], (_look(ott, told),))


def _holds(ott: Ott, reason: str) -> bool:
    return any(condition.reason == reason for condition in ott.conditions)


def _look(ott: Ott, told: Told) -> str:
    """The command that shows more about a child's warning."""
    if told.reason in ("BackOff", "Unhealthy"):
        copies = any(name.startswith(f"{names.snapshot_name(ott.name)}-") for name in told.objects)
        return commands.logs(ott, "snapshot" if copies else "worker")
    return commands.kubectl(ott, f"describe {told.kind.lower()} {max(told.objects)}")
