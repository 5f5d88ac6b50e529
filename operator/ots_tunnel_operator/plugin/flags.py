"""kubectl's own flags of the caller, in commands that are shown. Pure.

Without them a command that is copied would go to the cluster of the present context, and not to the one that was asked.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_PLUGIN = re.compile(r"\bkubectl ott (?:channels|events|list|pause|reset|restart|resume|top|why)\b")
_KUBECTL = re.compile(
    r"\bkubectl (?=-n |(?:annotate|apply|create|delete|describe|edit|get|logs|patch|replace|rollout|scale) )"
)
_WORKER = re.compile(r"\bots-tunnel (?=[^`]*--from-object )")
_OBJECT = re.compile(r"--from-object [\w./-]+")
_CONTEXT, _CONFIG = "--context=", "--kubeconfig="


def with_flags(text: str, flags: Sequence[str]) -> str:
    """The text with the flags in every command of kubectl, of this plugin and, as far as it has them, of `ots-tunnel`.

    Args:
        text: a command, or sentences that name some.
        flags: as they go to kubectl, such as `--context=prod`.
    """
    if not flags:
        return text
    given = " ".join(map(shlex.quote, flags))
    text = _around(_KUBECTL, text, after=f"{given} ")
    text = _around(_PLUGIN, text, after=f" {given}")
    for flag in flags:
        # `ots-tunnel` knows the context alone; it calls kubectl, which finds its configuration in the environment
        if flag.startswith(_CONTEXT):
            text = _around(_OBJECT, text, after=f" {shlex.quote(flag)}")
        elif flag.startswith(_CONFIG):
            text = _around(_WORKER, text, before=f"KUBECONFIG={shlex.quote(flag.removeprefix(_CONFIG))} ")
    return text


def _around(pattern: re.Pattern[str], text: str, *, before: str = "", after: str = "") -> str:
    return pattern.sub(lambda found: f"{before}{found[0]}{after}", text)
