"""The annotation: what is read, and what is refused with field, finding and what is allowed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ots_tunnel_operator.reset.request import Existing, Form, Request, Unreadable, read_request

EARLIER = "2026-11-20T00:00:00Z"


@pytest.mark.parametrize(
    "request_",
    [
        Request("a", Form.NEW_TUNNEL),
        Request("2026-11-23T07:00:00Z-ab12", Form.NEW_TUNNEL, existing=Existing.ADOPT),
        Request("a.b_c:d-e", Form.REWIND, EARLIER, Existing.DELETE),
        Request("a", Form.REWIND),
        Request("a" * 64, Form.NEW_BASE, existing=Existing.DELETE),
    ],
)
def test_what_is_asked_for_is_read_as_it_was_written(request_: Request) -> None:
    assert read_request(request_.annotation()) == request_


def test_what_is_left_out_keeps_the_tunnel_and_begins_with_the_oldest_change() -> None:
    assert read_request('{"token": "a", "form": "Rewind"}') == Request("a", Form.REWIND, None, Existing.KEEP)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ("NewTunnel", "it is no JSON"),
        pytest.param("[" * 100_000, "it is nested too deeply", id="nested"),
        (["a"], 'found ["a"], allowed is an object with token, form, startTime, existingTunnel'),
        ({"token": "a", "form": "NewBase", "force": True}, "field 'force' is not known, allowed are token, form"),
        ({"form": "NewBase"}, "token: found nothing, allowed are 1 to 64 letters"),
        ({"token": "two words", "form": "NewBase"}, "token: found 'two words'"),
        ({"token": 7, "form": "NewBase"}, "token: found '7'"),
        ({"token": "a"}, "form: found nothing, allowed are NewTunnel, Rewind, NewBase"),
        ({"token": "a", "form": "newBase"}, "form: found 'newBase'"),
        ({"token": "a", "form": "NewBase", "existingTunnel": "Drop"}, "existingTunnel: found 'Drop', allowed are Keep"),
        ({"token": "a", "form": "NewBase", "existingTunnel": None}, "existingTunnel: found nothing"),
        ({"token": "a", "form": "NewBase", "existingTunnel": "Adopt"}, "Adopt goes with form NewTunnel alone"),
        ({"token": "a", "form": "NewBase", "startTime": EARLIER}, "startTime: it goes with form Rewind alone"),
        ({"token": "a", "form": "Rewind", "startTime": "yesterday"}, "startTime: found 'yesterday', allowed is a time"),
        ({"token": "a", "form": "Rewind", "startTime": "2026-11-20T00:00:00"}, "startTime: found '2026-11-20T00"),
        ({"token": "a", "form": "Rewind", "startTime": "2026-13-20T00:00:00Z"}, "startTime: found '2026-13-20T00"),
        ({"token": "a", "form": "Rewind", "startTime": 1_700_000_000}, "startTime: found '1700000000'"),
    ],
)
def test_what_cannot_be_read_says_field_finding_and_what_is_allowed(found: Any, said: str) -> None:
    text = found if isinstance(found, str) else json.dumps(found)
    read = read_request(text)

    assert isinstance(read, Unreadable)
    assert said in read.message


def test_an_unreadable_text_has_a_token_of_its_own_which_is_always_the_same() -> None:
    first, again, other = (read_request(text).token for text in ("x", "x", "y"))

    assert first == again != other
    assert len(first) <= 64
