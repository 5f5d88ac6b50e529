"""Regular expressions of filters: matches, refusals, and linear time."""

from __future__ import annotations

import time

import pytest

from ots_emulator.api.rows.patterns import PatternError, pattern_of


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
    assert pattern_of(expression).find(text) == found


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
        pattern_of(expression)


def test_no_expression_takes_more_than_linear_time() -> None:
    started = time.perf_counter()

    assert pattern_of("(a*)*(a*)*c$").find("a" * 10_000 + "b") is None

    assert time.perf_counter() - started < 30
