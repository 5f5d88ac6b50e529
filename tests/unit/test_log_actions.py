"""The actions of log lines are an interface: one enum holds them, and every line carries one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ots_tunnel
from ots_tunnel.log_actions import LogAction
from tests.support.suite.log_calls import LEVELS, nodes_of, wrong_levels

PACKAGE = Path(ots_tunnel.__file__).parent


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every syntax node of the package, with its place for a message."""
    return nodes_of(PACKAGE)


def actions_named(node: ast.AST) -> list[ast.expr]:
    """The values that a node gives to the key or the argument `action`."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "action"]
    if isinstance(node, ast.keyword) and node.arg == "action":
        return [node.value]
    return []


def test_log_actions_are_an_interface() -> None:
    assert sorted(LogAction) == [
        "broker_trouble",
        "call_repeated",
        "channel_abandoned",
        "channel_failed",
        "channel_finished",
        "channel_opened",
        "channel_state",
        "checkpoint_adopted",
        "checkpoint_failed",
        "child_ended",
        "client_gone",
        "clock_not_believed",
        "closing_at_once",
        "column_never_seen",
        "completed",
        "connect_failed",
        "connected",
        "drain_overdue",
        "draining",
        "file_published",
        "first_leases",
        "heartbeat_failed",
        "lease_call_failed",
        "lease_written_anew",
        "login_unreadable",
        "look_refused",
        "not_compiled",
        "possible_gap",
        "preflight_failed",
        "processor_failed",
        "processor_hangs",
        "query_progress",
        "records_refused",
        "retention_unknown",
        "rows_left_out",
        "scan_read",
        "shutdown_failed",
        "sink_not_compared",
        "sink_not_ready",
        "snapshot_progress",
        "started",
        "stopped",
        "terminal_error",
        "write_retried",
    ]


def test_every_action_has_a_description_of_one_line() -> None:
    for action in LogAction:
        assert action.description.endswith(".")
        assert "\n" not in action.description


def test_no_action_is_written_as_a_literal() -> None:
    literals = [place for place, node in nodes() for value in actions_named(node) if isinstance(value, ast.Constant)]

    assert literals == []


def test_every_action_is_logged_somewhere() -> None:
    used = {
        node.attr
        for _, node in nodes()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "LogAction"
    }

    assert used == set(LogAction.__members__)


def test_a_line_has_a_level_that_its_action_names() -> None:
    assert wrong_levels(PACKAGE, LogAction.__members__) == []


def test_every_log_call_carries_keys() -> None:
    bare = [
        place
        for place, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "logger"
        and "extra" not in {each.arg for each in node.keywords}
    ]

    assert bare == []
