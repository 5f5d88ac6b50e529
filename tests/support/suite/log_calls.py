"""The calls of a package that log: an enum holds its actions, and each names the levels that its lines have."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

#: Methods of a logger.
LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})


class Levelled(Protocol):
    """An action."""

    levels: tuple[str, ...]


def nodes_of(package: Path) -> Iterator[tuple[str, ast.AST]]:
    """Every syntax node of the package, with its place for a message."""
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            yield f"{file.relative_to(package)}:{getattr(node, 'lineno', 0)}", node


def wrong_levels(package: Path, actions: Mapping[str, Levelled]) -> list[str]:
    """Calls whose action does not name their level, and actions that name none, or one that there is not."""
    calls = [node for _, node in nodes_of(package) if isinstance(node, ast.Call)]
    wrong = [
        f"{node.attr}: {call.func.attr}"
        for call in calls
        if isinstance(call.func, ast.Attribute)
        if call.func.attr in LEVELS - {"log"} and getattr(call.func.value, "id", "") == "logger"
        for node in ast.walk(call)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "LogAction" and node.attr.isupper()
        if call.func.attr.upper().replace("EXCEPTION", "ERROR") not in actions[node.attr].levels
    ]
    known = {level.upper() for level in LEVELS}
    return wrong + [name for name, action in actions.items() if not action.levels or set(action.levels) - known]
