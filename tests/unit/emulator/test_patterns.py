"""Regular expressions of filters: what Python's matcher finds, in time that is bounded."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ots_emulator.pattern_code import PatternError
from ots_emulator.patterns import pattern_of


def python_finds(expression: str, text: str) -> str | None:
    found = re.search(expression, text, re.ASCII)
    if found is None:
        return None
    return found[1] if found.re.groups and found[1] is not None else found[0]


@pytest.mark.parametrize(
    "expression",
    [
        "x([0-9]+)y",
        "lastupdatetime:([0-9]+)}",
        "a|ab|abc",
        "(a|ab)(c|bcd)",
        "a*?b",
        "(a+?)b",
        "^a",
        "b$",
        "^$",
        "",
        "a{2}",
        "a{1,2}?b",
        "a{2,}",
        "[^a-c]+",
        "[]a]",
        "[a-]",
        r"[\d.]+",
        r"\d+\.\d",
        r"\w+\s\W?",
        r"\{(\S)",
        "(?:ab)+(c)",
        "((a)b)",
        ".+",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "ab",
        "abc",
        "abcd",
        "aab",
        "x12y",
        "xy x7y",
        "{name:n1,lastupdatetime:12345}",
        "1.5 a-]",
        "a\nb",
        "{q b",
    ],
)
def test_it_finds_what_python_finds(expression: str, text: str) -> None:
    assert pattern_of(expression).find(text) == python_finds(expression, text)


# What is repeated never matches nothing: what that finds differs from one matcher to the next.
PIECES = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "{1,2}"])).map(
            lambda pair: f"(?:a{pair[0]}){pair[1]}"
        ),
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(PIECES, PIECES, st.text("ab1", max_size=8))
def test_it_finds_what_python_finds_in_any(before: str, group: str, text: str) -> None:
    expression = f"{before}({group})"

    assert pattern_of(expression).find(text) == python_finds(expression, text)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "missing '\\)'"),
        (")", "unmatched '\\)' at 0"),
        ("*a", "nothing to repeat at 0"),
        ("a**", "multiple repeat at 2"),
        ("[a", "ends too early"),
        ("[b-a]", "bad range b-a"),
        ("a{2,1}", "bad count of repeats"),
        ("a{x}", "bad count of repeats"),
        ("a{99999}", "bad count of repeats"),
        ("(?=a)", "is not offered, only"),
        (r"(a)\1", r"\\1 at 3 is not offered"),
        (r"\b", r"\\b at 0 is not offered"),
        ("a{600}", "more than 500 steps"),
        ("((a{30}){30}){30}", "more than 500 steps"),
        ("a" * 257, "longer than 256 characters"),
        ("|" * 256, "more than 500 steps"),
        ("(" * 21 + "a" + ")" * 21, "more than 20 groups within each other"),
        ("\\", "ends too early"),
    ],
)
def test_what_cannot_be_used_is_said(expression: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        pattern_of(expression)


def test_no_expression_takes_for_ever() -> None:
    started = time.perf_counter()

    assert pattern_of("(a*)*(a*)*c$").find("a" * 3000 + "b") is None

    assert time.perf_counter() - started < 5
