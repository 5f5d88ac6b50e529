"""The view of `kubectl ott why`: four answers in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ots_tunnel_operator.plugin.flags import with_flags
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.plugin.serving import Serving
from ots_tunnel_operator.plugin.text.screen import Screen
from ots_tunnel_operator.plugin.text.spans import clock, words
from ots_tunnel_operator.plugin.why.advice import next_steps
from ots_tunnel_operator.plugin.why.decisions import last_decisions
from ots_tunnel_operator.plugin.why.state import now_sentences, title
from ots_tunnel_operator.plugin.why.waits import waits_sentences
from ots_tunnel_operator.reasons import PAGE


def why_lines(
    ott: Ott,
    screen: Screen,
    now: float,
    *,
    events: Iterable[Mapping[str, Any]] = (),
    serving: Serving | None = None,
    notes: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> list[str]:
    """What it does now, what it waits for, what was decided last, and what to do next.

    Args:
        events: Kubernetes events of the object.
        serving: the Lease of the operator that serves it; None where the object names none.
        notes: what could not be read, for the end.
        flags: kubectl's own, for the commands that are shown.
    """

    def told(sentences: Iterable[str]) -> list[str]:
        return [with_flags(sentence, flags) for sentence in sentences]

    lines = [screen.paint(line, "bold") for line in screen.sentences(title(ott), indent="")]
    lines += _section("Now", told(now_sentences(ott, now)), screen)
    lines += _section("Waits for", told(waits_sentences(ott, now, serving)), screen)
    decided = [f"{words(now - each.time)} ago, {each.reason}: {each.text}" for each in last_decisions(ott, events)]
    lines += _section("Last decisions", told(decided) or ["None is known."], screen)
    lines += _heading("Next", screen)
    gone = serving if serving is not None and serving.is_gone(now) else None
    for step in next_steps(ott, gone):
        lines += screen.sentences(with_flags(step.text, flags))
        # a command is never broken, so that it can be copied
        lines += [f"    {screen.paint(with_flags(command, flags), 'bold')}" for command in step.commands]
    lines += _footer(ott, now, notes, screen)
    return lines


def _heading(name: str, screen: Screen) -> list[str]:
    return ["", screen.paint(name, "dim")]


def _section(name: str, sentences: Iterable[str], screen: Screen) -> list[str]:
    lines = _heading(name, screen)
    for sentence in sentences:
        lines += screen.sentences(sentence, indent="    ", first="  ")
    return lines


def _footer(ott: Ott, now: float, notes: Sequence[str], screen: Screen) -> list[str]:
    """Where to read on, how old the figures are, and what could not be read."""
    lines: list[str] = []
    if (problem := ott.problem) is not None:
        lines += screen.sentences(f"{PAGE}#{problem.reason.lower()} explains {problem.reason}.", indent="")
    observed = ott.time("observedTime")
    if observed is not None and ott.condition("Ready").status == "Unknown":
        age = words(now - observed)
        lines += screen.sentences(f"The figures are of {clock(observed)}, {age} ago; newer ones are not known.", "")
    for note in notes:
        lines += screen.sentences(note, indent="")
    return ["", *lines] if lines else []
