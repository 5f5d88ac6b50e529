"""Secrets in texts that escape them: none is left, whichever escapes are used and wherever the text is cut off."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.transport.readings import Readings, TooManyReadings
from ots_tunnel.transport.secret_forms import LEAST_SECRET, secret_forms


def all_percent(text: str) -> str:
    """Every octet escaped, in lower case."""
    return "".join(f"%{octet:02x}" for octet in text.encode())


def all_numbers(text: str) -> str:
    """Every character as a page's number."""
    return "".join(f"&#{ord(each)};" for each in text)


#: How languages and addresses write a text.
ESCAPES: dict[str, Callable[[str], str]] = {
    "address": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "path": lambda text: quote(text, safe="/:@!$&'()*+,;="),
    "every octet": all_percent,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON with slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON of .NET": lambda text: json.dumps(text)[1:-1].replace("+", "\\u002B").replace("&", "\\u0026"),
    "page": html.escape,
    "page of Go": lambda text: html.escape(text).replace("+", "&#43;"),
    "page of numbers": all_numbers,
    "page of hexadecimal numbers": lambda text: "".join(f"&#x{ord(each):X};" for each in text),
    "upper case": str.upper,
}
CHARACTERS = st.one_of(
    st.sampled_from("+/=&%\\\"'<>;#u2Bax"), st.characters(exclude_categories=("C", "Z"), codec="utf-8")
)
SECRETS = st.text(CHARACTERS, min_size=LEAST_SECRET, max_size=24).filter(
    lambda secret: secret.upper().lower() == secret
)
COMPOSITIONS = st.lists(st.sampled_from(sorted(ESCAPES)), max_size=2)


def escaped(secret: str, composition: list[str]) -> str:
    """The secret with one escape after the other."""
    for name in composition:
        secret = ESCAPES[name](secret)
    return secret


@given(
    SECRETS,
    COMPOSITIONS,
    st.sampled_from(["", "100%", "a&", "\\", "?sig=", "&#4"]),
    st.sampled_from(["", "2B", ";", " "]),
)
@example("abcd+e", ["address"], "100%", "")
@example("amp;x", [], "&", "")
def test_no_secret_is_left_whatever_is_beside_it(secret: str, composition: list[str], before: str, behind: str) -> None:
    text = f"no {before}{escaped(secret, composition)}{behind} here"

    found = Readings(text.encode()).without(secret_forms(secret), b"***")

    assert found.startswith(b"no ")
    assert found.endswith(b" here")
    assert len(found) <= len(f"no {before}***{behind} here".encode())


@given(SECRETS, COMPOSITIONS, st.data())
def test_no_beginning_of_a_secret_is_left_where_the_text_is_cut_off(
    secret: str, composition: list[str], data: st.DataObject
) -> None:
    """A cut leaves at least `LEAST_SECRET` whole characters of the secret in the text."""
    told = escaped(secret, composition).encode()
    least = len(escaped(secret[:LEAST_SECRET], composition).encode())
    cut = data.draw(st.integers(min(least, len(told)), len(told)))

    assert Readings(b"no " + told[:cut]).without(secret_forms(secret), b"***") == b"no ***"


@given(SECRETS)
def test_a_secret_of_an_address_is_found_without_its_escapes(secret: str) -> None:
    assert Readings(secret.encode()).without(secret_forms(quote(quote(secret))), b"***") == b"***"


def test_octets_that_are_no_text_are_found() -> None:
    assert Readings(unquote_to_bytes("no %ffabc%fe here")).without(secret_forms("%FFabc%FE"), b"***") == b"no *** here"


@pytest.mark.parametrize(
    "text", ["no key abc", "100% of abc \\ & &#; &#x; %zz \\u12 &nosuch; &#99999999;", "%", "&", "\\"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert Readings(text.encode()).without(secret_forms("topsecret") | secret_forms("abc"), b"***") == text.encode()


def test_a_text_with_too_many_readings_is_refused() -> None:
    with pytest.raises(TooManyReadings):
        Readings(b"\\" * 1000)
