"""Regular expressions of filters: matches, refusals, and linear time."""

from __future__ import annotations

import time

import pytest

from ots_emulator.api.rows.patterns import WORK, PatternError, Work, pattern_of
from ots_emulator.refusal import Refusal


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        ("x([0-9]+)y", "ax12y x34y", "12"),
        ("lastupdatetime:([0-9]+)}", "{name:n1,lastupdatetime:12345}", "12345"),
        ("a|ab", "abc", "a"),
        ("(a|ab)(c|bcd)", "abcd", "a"),
        ("(a+?)b", "aab", "aa"),
        ("^é(.)$", "éü", "ü"),
        ("(x)?a", "a", None),
        ("b", "aaa", None),
        ("", "abc", ""),
    ],
)
def test_the_first_group_or_all_of_the_match_is_found(expression: str, text: str, found: str | None) -> None:
    assert pattern_of(expression, Work()).find(text, Work()) == found


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "missing"),
        (")", "unexpected"),
        ("*a", "no argument for repetition"),
        ("[b-a]", "invalid character class range"),
        ("(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("((a{30}){30}){30}", "."),
        ("a" * 257, "longer than 256 characters"),
    ],
)
def test_unusable_expressions_are_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        pattern_of(expression, Work())


def test_no_expression_takes_more_than_linear_time() -> None:
    started = time.perf_counter()

    assert pattern_of("(a*)*(a*)*c$", Work()).find("a" * 10_000 + "b", Work()) is None

    assert time.perf_counter() - started < 30


def test_the_work_of_a_request_is_what_its_expressions_search_times_their_states() -> None:
    work = Work()
    small, large = (pattern_of(f"(a|b)*?a(a|b){{{count}}}c", work) for count in (2, 60))
    spent = [WORK - work.left]
    for pattern in (small, large, large):
        before = work.left
        pattern.find("a" * 20_000, work)
        spent.append(before - work.left)

    assert spent[1] == (1 << 14) * small.states
    assert spent[2] == spent[3] == (1 << 14) * large.states > 8 * spent[1]
    assert 0 < spent[0] < spent[1]
    with pytest.raises(Refusal, match="the regular expressions of one request exceed 100000000 steps"):
        [large.find("a" * 20_000, work) for _ in range(40)]


def test_making_expressions_is_work_too() -> None:
    work = Work()
    with pytest.raises(Refusal, match="the regular expressions of one request exceed"):
        [pattern_of(f"((((a|b|ab|ba){{9}}){{9}}){{9}})c{number % 3}", work) for number in range(10_000)]
