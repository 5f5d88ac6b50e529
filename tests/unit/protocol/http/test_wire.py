"""HTTP/1.1 as a client of one endpoint needs it: requests as bytes, answers from pieces of bytes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.limits import HEAD_LIMIT
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.signing import content_md5
from ots_tunnel.protocol.http.wire import LARGE_BODY, AnswerReader, encode_head, parse_head

HEAD = b"HTTP/1.1 200 OK\r\nX-Ots-Date: now\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def read(*pieces: bytes) -> tuple[HttpResponse | None, bool]:
    """The answer in the pieces, of which only the last one may complete it."""
    reader = AnswerReader()
    for piece in pieces[:-1]:
        assert reader.feed(piece) is None
    return reader.feed(pieces[-1]), reader.may_reuse


def test_a_request_has_every_header_and_the_length() -> None:
    head = encode_head("host:80", HttpRequest("/ListTable", {"x-ots-date": "now"}, b"abc"))

    assert head.startswith(b"POST /ListTable HTTP/1.1\r\nHost: host:80\r\n")
    assert b"\r\nx-ots-date: now\r\n" in head
    assert head.endswith(b"\r\nContent-Length: 3\r\n\r\n")
    assert head.count(b"\r\n\r\n") == 1


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\r\nb"])
@pytest.mark.parametrize("place", ["name", "value"])
def test_a_header_has_no_line_break(value: str, place: str) -> None:
    headers = {value: "x"} if place == "name" else {"x": value}

    with pytest.raises(CodecError, match="line break"):
        encode_head("host", HttpRequest("/", headers, b""))


WHOLE = [
    (HEAD + b"Content-Length: 3\r\n\r\nabc", b"abc"),
    (HEAD + b"Content-Length: 0\r\n\r\n", b""),
    (HEAD + CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
    (HEAD + CHUNKED + b"2;x=1\r\nab\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n", b"ab0123456789"),
    (HEAD + CHUNKED + b"0\r\n\r\n", b""),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 3\r\n\r\nabc", b"abc"),
]


@pytest.mark.parametrize(("message", "body"), WHOLE)
def test_an_answer_is_the_same_however_it_is_cut(message: bytes, body: bytes) -> None:
    expected = HttpResponse(200, {}, body)
    cuts = [(message[:at], message[at:]) for at in range(1, len(message))]
    for pieces in [(message,), *cuts, tuple(message[at : at + 1] for at in range(len(message)))]:
        answer, reuse = read(*pieces)

        assert answer is not None
        assert (answer.status, answer.body, answer.headers["x-ots-date"]) == (200, expected.body, "now")
        assert reuse


def test_a_body_may_end_with_the_connection() -> None:
    reader = AnswerReader()

    assert reader.feed(HEAD + b"\r\nab") is None
    assert reader.feed(b"c") is None
    assert reader.end() == HttpResponse(200, {"x-ots-date": "now"}, b"abc")
    assert not reader.may_reuse


@pytest.mark.parametrize("message", [message[:-1] for message, _ in WHOLE if len(message) > 80])
def test_a_cut_answer_is_incomplete(message: bytes) -> None:
    reader = AnswerReader()

    assert reader.feed(message) is None
    assert reader.end() is None


def test_no_content_has_no_body() -> None:
    assert read(b"HTTP/1.1 204 No Content\r\n\r\n") == (HttpResponse(204), True)


@pytest.mark.parametrize(
    ("line", "version", "reuse"),
    [
        (b"", b"1.1", True),
        (b"Connection: close\r\n", b"1.1", False),
        (b"Connection: x, Close\r\n", b"1.1", False),
        (b"", b"1.0", False),
        (b"Connection: keep-alive\r\n", b"1.0", True),
    ],
)
def test_when_another_request_may_follow(line: bytes, version: bytes, reuse: bool) -> None:
    assert read(b"HTTP/" + version + b" 200 OK\r\n" + line + b"Content-Length: 0\r\n\r\n")[1] is reuse


@pytest.mark.parametrize(
    "message",
    [
        b"220 mail\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20x OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nname : space\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", id="thousands of digits"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        HEAD + CHUNKED + b"-1\r\n",
        HEAD + CHUNKED + b"0x1\r\na\r\n",
        HEAD + CHUNKED + b"1\r\nabc",
        HEAD + CHUNKED + b"0\r\n\r\nmore",
        HEAD + CHUNKED + b"1" * 2000,
        HEAD + CHUNKED + b"1\na\r\n",
        HEAD + CHUNKED + b"1\r\na\rb",
        b"HTTP/1.1 200 OK\r\n" + b"a" * HEAD_LIMIT,
    ],
)
def test_a_malformed_answer_is_refused(message: bytes) -> None:
    with pytest.raises(CodecError):
        read(message)


@pytest.mark.parametrize(
    ("begin", "line"),
    [(HEAD + CHUNKED + b"0\r\n", b"a: b\r\n"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")],
    ids=["trailers", "heads before the answer's own"],
)
def test_lines_around_an_answer_do_not_go_on_without_end(begin: bytes, line: bytes) -> None:
    with pytest.raises(CodecError, match="longer than 65536 bytes"):
        read(begin + line * (HEAD_LIMIT // len(line) + 1))


@pytest.mark.parametrize(
    "message",
    [
        HEAD + b"Content-Length: 101\r\n\r\n",
        HEAD + b"\r\n" + b"a" * 101,
        HEAD + CHUNKED + b"65\r\n",
        HEAD + CHUNKED + b"64\r\n" + b"a" * 100 + b"\r\n1\r\n",
    ],
    ids=["announced", "until the end of the connection", "one chunk", "several chunks"],
)
def test_an_answer_has_a_maximum_size(message: bytes) -> None:
    with pytest.raises(CodecError, match=r"an answer of 101 bytes or more; allowed are 100"):
        AnswerReader(limit=100).feed(message)


def test_an_answer_may_be_as_large_as_the_limit() -> None:
    assert AnswerReader(limit=100).feed(HEAD + CHUNKED + b"64\r\n" + b"a" * 100 + b"\r\n0\r\n\r\n") is not None
    assert AnswerReader(limit=100).feed(HEAD + b"Content-Length: 100\r\n\r\n" + b"a" * 100) is not None


def one_large_chunk(units: int) -> list[bytes]:
    return [b"%x\r\n" % (units << 20), *[bytes(1 << 14)] * (units << 6)]


def many_small_chunks(units: int) -> list[bytes]:
    return [b"1\r\nx\r\n" * (units << 12)]


@pytest.mark.parametrize("pieces", [one_large_chunk, many_small_chunks])
def test_the_time_for_chunks_grows_with_their_bytes_alone(pieces: Callable[[int], list[bytes]]) -> None:
    def seconds(units: int) -> float:
        answer, reader = pieces(units), AnswerReader()
        reader.feed(HEAD + CHUNKED)
        began = time.process_time()
        for piece in answer:
            reader.feed(piece)
        return time.process_time() - began

    single, eightfold = (min(seconds(units) for _ in range(3)) for units in (2, 16))

    assert eightfold < 32 * single, "eight times the bytes take eight times the time, not sixty-four times"


def test_an_answer_that_ends_with_the_connection_is_cut_where_its_md5_says_so() -> None:
    """A page of a shard whose next position was cut off would be the end of the shard."""
    body = b"records and the next position"
    head = HEAD + f"X-Ots-ContentMD5: {content_md5(body)}\r\n\r\n".encode()

    for size in range(len(body)):
        reader = AnswerReader()
        assert reader.feed(head + body[:size]) is None
        assert reader.end() is None
    reader = AnswerReader()
    assert reader.feed(head + body) is None
    answer = reader.end()
    assert answer is not None
    assert answer.body == body


def test_headers_that_repeat_are_one() -> None:
    assert parse_head(b"HTTP/1.1 200\r\nA: 1\r\na: 2") == (b"HTTP/1.1", 200, {"a": "1, 2"})


def test_messages_show_sizes_and_no_contents() -> None:
    assert repr(HttpRequest("/ReadRecords", {}, b"secret")) == "HttpRequest(/ReadRecords, 6 bytes)"
    assert repr(HttpResponse(200, {}, b"secret")) == "HttpResponse(200, 6 bytes)"


def in_place(message: bytes, taken: int) -> HttpResponse | None:
    """The answer to a reader that is given its first bytes, and fills the room of its body with the others."""
    reader = AnswerReader()
    answer = reader.feed(message[:taken])
    while answer is None and taken < len(message):
        room = reader.room()
        assert room is not None
        piece = message[taken : taken + min(len(room), 10_000)]
        room[: len(piece)] = piece
        answer = reader.filled(len(piece))
        taken += len(piece)
    return answer


@pytest.mark.parametrize("first", [0, 1, 10_000])
def test_a_large_body_is_read_into_its_room(first: int) -> None:
    body = bytes(range(256)) * 400
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)

    assert in_place(head + body, len(head) + first) == HttpResponse(
        200, {"x-ots-date": "now", "content-length": str(len(body))}, body
    )


def test_bytes_behind_a_large_body_are_noticed() -> None:
    head = HEAD + b"Content-Length: %d\r\n\r\n" % (2 * LARGE_BODY)

    with pytest.raises(CodecError, match="longer than its content-length"):
        in_place(head + bytes(2 * LARGE_BODY + 1), len(head))


@pytest.mark.parametrize(
    "message",
    [
        b"HTTP/1.1 200",
        HEAD + b"Content-Length: 100\r\n\r\n",
        HEAD + CHUNKED + b"20000\r\n",
        HEAD + b"\r\n",
    ],
    ids=["no head yet", "small", "in chunks", "ends with the connection"],
)
def test_what_is_no_large_body_of_known_length_has_no_room(message: bytes) -> None:
    reader = AnswerReader()

    assert reader.feed(message) is None
    assert reader.room() is None
