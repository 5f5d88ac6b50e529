"""status.reset and status.lost: what is written is read back, and nothing of an earlier reset stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ots_tunnel_operator import names
from ots_tunnel_operator.reset.forms import Loss, Lost
from ots_tunnel_operator.reset.record import (
    MAX_MESSAGE,
    MAX_TOKENS,
    asked,
    begun,
    done,
    lost_document,
    recorded_loss,
    refused,
    running,
    used_tokens,
)
from ots_tunnel_operator.reset.request import Existing, Form, Request, Unreadable
from tests.unit.operator.reset.test_forms import NOW, USED

REWIND = Request("a", Form.REWIND, "2026-11-20T00:00:00Z", Existing.DELETE)


def merged(before: dict[str, Any], change: dict[str, Any] | None) -> dict[str, Any]:
    """A merge patch."""
    return {key: value for key, value in (before | (change or {})).items() if value is not None}


def test_a_reset_under_way_holds_all_of_its_request() -> None:
    found = running({"reset": merged({}, begun(REWIND, USED, "words", {}))})

    assert found is not None
    assert (found.request, found.former, found.since) == (REWIND, "t-1", NOW)
    assert found.delivered_until == NOW - 3600


@pytest.mark.parametrize("after", [refused(REWIND, "no", {}, NOW), refused(Unreadable("u", "no"), "no", {}, NOW)])
def test_a_refusal_leaves_nothing_of_an_earlier_reset(after: dict[str, Any]) -> None:
    before = merged(merged({}, begun(REWIND, USED, "words", {})), done("t-2", "done", NOW))

    assert merged(before, after) == merged({}, after)
    assert running({"reset": merged(before, after)}) is None


def test_what_is_done_keeps_what_was_asked_for() -> None:
    found = merged(merged({}, begun(REWIND, USED, "words", {})), done("t-2", "done", NOW))

    assert (found["state"], found["tunnelId"], found["formerTunnelId"]) == ("Done", "t-2", "t-1")
    assert running({"reset": found}) is None
    assert "tunnelId" not in done("", "done", NOW)


def test_messages_are_cut() -> None:
    long = "x" * 5000
    found = (begun(REWIND, USED, long, {}), refused(REWIND, long, {}, NOW), done("t-2", long, NOW))

    assert {len(each["message"]) for each in found} == {MAX_MESSAGE}


def test_each_token_is_asked_for_once() -> None:
    annotations = {names.ANNOTATION_RESET: REWIND.annotation()}

    assert asked({}, {}) is None
    assert asked(annotations, {}) == REWIND
    assert asked(annotations, {"reset": {"token": "b"}}) == REWIND
    assert asked(annotations, {"reset": {"token": "a"}}) is None


def test_a_token_that_another_one_followed_is_not_asked_for_again() -> None:
    """GitOps puts an earlier annotation back after one that a person wrote with the plugin."""
    first = {"reset": merged({}, begun(replace(REWIND, token="b"), USED, "words", {"reset": {"token": "a"}}))}
    second = {"reset": merged(first["reset"], refused(Unreadable("u", "no"), "no", first, NOW))}
    annotations = {names.ANNOTATION_RESET: REWIND.annotation()}

    assert asked(annotations, first) is None
    assert asked(annotations, second) is None
    assert used_tokens(second) == ("a", "b", "u")


def test_the_tokens_that_are_remembered_are_the_last_ones() -> None:
    status: dict[str, Any] = {}
    for number in range(MAX_TOKENS + 5):
        status = {"reset": merged({}, refused(replace(REWIND, token=f"t{number}"), "no", status, NOW))}

    assert used_tokens(status) == tuple(f"t{number}" for number in range(4, MAX_TOKENS + 5))


@pytest.mark.parametrize(
    "loss", [Loss(Lost.CHANGES, NOW - 60, None), Loss(Lost.DELETIONS, None, NOW), Loss(Lost.CHANGES, None, None)]
)
def test_a_loss_is_read_as_it_was_written(loss: Loss) -> None:
    before = merged({}, lost_document(Loss(Lost.DELETIONS, 1.0, 2.0)))

    assert recorded_loss({"lost": merged(before, lost_document(loss))}) == loss


def test_no_loss_is_none() -> None:
    assert lost_document(None) is None
    assert recorded_loss({}) is None
    assert recorded_loss({"lost": {}}) is None
