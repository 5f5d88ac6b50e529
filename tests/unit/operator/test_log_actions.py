"""Log actions of the operator are an interface: one enum holds them, every line carries one and its keys."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ots_tunnel_operator
from ots_tunnel_operator.log_actions import DESCRIPTIONS, LogAction
from tests.support.suite.log_calls import LEVELS, nodes_of, wrong_levels

PACKAGE = Path(ots_tunnel_operator.__file__).parent


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every syntax node of the package, with its place for a message."""
    return nodes_of(PACKAGE)


def test_a_line_has_a_level_that_its_action_names() -> None:
    assert wrong_levels(PACKAGE, LogAction.__members__) == []


def test_log_actions_are_an_interface() -> None:
    assert sorted(LogAction) == [
        "action_failed",
        "applied_object",
        "close_incomplete",
        "console_failed",
        "created_destination",
        "created_tunnel",
        "deleted_object",
        "deleted_tunnel",
        "deletion_delayed",
        "event_lost",
        "intent_stands",
        "kopf_ended",
        "kopf_watch_failed",
        "leading",
        "lease_failed",
        "lease_lost",
        "loop_stalled",
        "marked_pod",
        "no_election",
        "object_unreadable",
        "pass_failed",
        "reset_done",
        "reset_refused",
        "reset_started",
        "scaled",
        "scaled_down",
        "served_elsewhere",
        "serving",
        "serving_console",
        "standing_by",
        "status_dropped",
        "tunnel_left_behind",
        "watch_ended",
        "watch_refused",
        "worker_silent",
    ]


def test_every_action_has_a_description_of_one_line() -> None:
    assert list(DESCRIPTIONS) == list(LogAction)
    for description in DESCRIPTIONS.values():
        assert description.endswith(".")
        assert "\n" not in description


def test_a_line_about_an_object_names_it_under_one_key() -> None:
    for action in LogAction:
        assert ("object" in action.keys) == ("namespace" in action.keys)
        assert ("child" in action.keys) == ("kind" in action.keys)
        assert "child" not in action.keys or "namespace" in action.keys
        assert "resource" not in action.keys


def test_every_action_is_logged_somewhere() -> None:
    used = {
        node.attr
        for _, node in nodes()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "LogAction"
    }

    assert used == set(LogAction.__members__)


def test_every_log_call_carries_keys_and_no_action_is_a_literal() -> None:
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
    literals = [
        place
        for place, node in nodes()
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "action" and isinstance(value, ast.Constant)
    ]

    assert (bare, literals) == ([], [])
