"""Pod templates that are nested too deeply to be rendered. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ots_tunnel_operator.reasons import Problem, Reason

#: Most levels of a pod template. Those of Kubernetes have about ten; the API server takes thousands of anything.
MAX_LEVELS = 50


def too_deep(path: str, template: Mapping[str, Any]) -> Problem | None:
    """The problem of a template that is nested too deeply to be rendered; None where it is not."""
    if not _is_deeper(template, MAX_LEVELS):
        return None
    return Problem(
        Reason.INVALID_SPEC,
        f"{path}: found fields nested more than {MAX_LEVELS} levels deep, allowed are {MAX_LEVELS}: correct the "
        "template",
    )


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether there is a value behind so many levels of maps and lists."""
    below = [value]
    for _ in range(levels):
        below = [member for each in below for member in _members(each)]
        if not below:
            return False
    return True


def _members(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
