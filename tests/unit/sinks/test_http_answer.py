"""What an answer says about its batch: every status means exactly one thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.sinks.http_answer import MAX_RETRY_AFTER, NOT_BEGUN, Answer, retry_after


@given(st.integers(0, 999), st.booleans())
def test_every_answer_means_one_thing(status: int, is_early: bool) -> None:
    answer = Answer(status, is_early=is_early)
    meanings = [answer.is_success, answer.is_in_doubt, answer.is_refusal, status in NOT_BEGUN]

    assert meanings.count(True) == 1


@given(st.integers(500, 999), st.floats(0, 100))
def test_no_error_of_a_server_proves_that_nothing_was_done(status: int, pause: float) -> None:
    assert Answer(status, pause).is_in_doubt


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(), "no answer"),
        (Answer(503), "HTTP 503"),
        (Answer(200, is_early=True), "HTTP 200 before the end of the batch"),
    ],
)
def test_an_answer_is_told_in_words(answer: Answer, text: str) -> None:
    assert str(answer) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("99999999", MAX_RETRY_AFTER),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0),
        ("soon", 0),
        ("", 0),
    ],
)
def test_a_retry_after_is_a_number_or_a_date(text: str, seconds: float) -> None:
    assert retry_after(text, now=60) == seconds
