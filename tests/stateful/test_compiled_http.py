"""The compiled twin of answers' heads against the Python reference: equal, or left to the reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http import wire
from ots_tunnel.protocol.http.body_room import BodyRoom
from ots_tunnel.protocol.plainbuffer import compiled

native = compiled.native
pytestmark = pytest.mark.usefixtures("compiled_codec")

plain = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30)
names = st.text(st.characters(categories=["Ll", "Lu", "Nd"], max_codepoint=126), min_size=1, max_size=20)
odd = st.text(st.characters(max_codepoint=0x2FF), max_size=8)
values = plain | odd
usual_headers = st.dictionaries(names, plain, max_size=8)
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0")


def outcome(read: Callable[[], object]) -> object:
    """The result, or the text of the error."""
    try:
        return read()
    except CodecError as error:
        return f"error: {error}"


heads = st.builds(
    lambda version, status, reason, lines: b"\r\n".join([version + b" " + status + reason, *lines]),
    st.sampled_from(VERSIONS),
    st.integers(0, 1200).map(lambda number: b"%d" % number),
    st.sampled_from([b"", b" OK", b" ", b"\t", b" \xff", b"x"]),
    st.lists(
        st.tuples(names | odd, st.sampled_from([":", ": ", ":\t", " :", ""]), values, st.sampled_from(["", " ", "\n"]))
        .map("".join)
        .map(str.encode),
        max_size=5,
    ),
)


@given(heads)
@example(b"HTTP/1.1 200 OK\r\nA: 1\r\na: 2")
@example(b"HTTP/1.1 200\r\nX-Ots-Date:  now \t")
@example(b"HTTP/1.1 200 OK\r\n" + b"n" * 70 + b": v")
@example(b"HTTP/1.1 20")
def test_an_answers_head_is_read_as_by_the_reference(head: bytes) -> None:
    assert outcome(lambda: wire.parse_head(head)) == outcome(lambda: wire.parse_head_in_python(head))


@given(st.integers(100, 999), usual_headers)
def test_usual_answers_are_not_left_to_the_reference(status: int, headers: dict[str, str]) -> None:
    usual = {name.lower(): value for name, value in headers.items()}
    lines = "".join(f"\r\n{name}: {value}" for name, value in usual.items())

    assert native.parse_head(f"HTTP/1.1 {status} OK{lines}".encode()) == (b"HTTP/1.1", status, usual)


@pytest.mark.parametrize("is_compiled", [True, False])
@given(pieces=st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=6), first=st.integers(0, 5))
def test_a_body_is_what_was_put_into_its_room(is_compiled: bool, pieces: list[bytes], first: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if not is_compiled:
            patch.setattr("ots_tunnel.protocol.http.body_room.native", None)
        begun, later = pieces[:first], pieces[first:] or [b"end"]
        whole = b"".join([*begun, *later])
        room = BodyRoom(len(whole), begun)

    found = []
    for piece in later:
        room.rest()[: len(piece)] = piece
        found.append(room.filled(len(piece)))

    assert found == [None] * (len(later) - 1) + [whole]
    assert isinstance(found[-1], bytes)


def test_a_byte_behind_the_body_is_noticed() -> None:
    room = BodyRoom(100, [b"ab"])

    assert repr(room) == "BodyRoom(2 of 100 bytes)"
    assert len(room.rest()) == 99
    with pytest.raises(CodecError, match="longer than its content-length"):
        room.filled(99)
