"""HTTP/1.1 as bytes, as far as a client of one endpoint needs it; without input or output.

A request has a body of known length. An answer has a Content-Length, is chunked, or ends with the connection. Every
byte of an answer is looked at once, however it is cut into pieces, and an answer has a maximum size.
Source: RFC 9112, sections 4 to 7 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.body_room import BodyRoom
from ots_tunnel.protocol.http.chunks import Chunks
from ots_tunnel.protocol.http.limits import ANSWER_LIMIT, HEAD_LIMIT, check_size
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse
from ots_tunnel.protocol.http.signing import content_md5
from ots_tunnel.protocol.plainbuffer.compiled import native

#: Bytes of a body that are still missing from which a transport fills it itself; own choice.
LARGE_BODY = 32 << 10
_END = b"\r\n\r\n"
#: Line breaks in the head of a request besides those of the caller's headers: request line, Host, Accept, Content-Type,
#: Content-Length and the empty line.
_OWN_LINES = 6
_NO_BODY = frozenset((204, 304))
#: Python refuses to read a number of thousands of digits.
_LENGTH = re.compile(r"[0-9]{1,18}")
_STATUS_LINE = re.compile(rb"(HTTP/1\.[01]) ([1-9][0-9][0-9])(?: .*)?", re.DOTALL)


def encode_head(host: str, request: HttpRequest) -> bytes:
    """The bytes of a request before its body.

    Args:
        host: of the endpoint, with its port if it names one.

    Raises:
        CodecError: a header contains a line break, which would start another header.
    """
    lines = [f"{name}: {value}\r\n" for name, value in request.headers.items()]
    text = (
        f"POST {request.path} HTTP/1.1\r\nHost: {host}\r\n{''.join(lines)}Accept: */*\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {len(request.body)}\r\n\r\n"
    )
    expected = len(lines) + _OWN_LINES
    if text.count("\n") != expected or text.count("\r") != expected:
        raise CodecError("a header of the request has a line break")
    return text.encode()


class AnswerReader:
    """Reads one answer from pieces of bytes.

    `may_reuse` is valid once the answer is complete: whether the connection can carry another request.

    Args:
        limit: most bytes of the answer's body.
    """

    __slots__ = (
        "_body",
        "_chunks",
        "_early",
        "_head",
        "_headers",
        "_left",
        "_limit",
        "_pieces",
        "_size",
        "_status",
        "may_reuse",
    )

    def __init__(self, limit: int = ANSWER_LIMIT) -> None:
        self._limit = limit
        self._head = b""
        #: Bytes of the heads that precede the answer's own, with status 1xx.
        self._early = 0
        #: Bytes of a body that ends with the connection.
        self._size = 0
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._pieces: list[bytes] = []
        #: Missing bytes of the body; None where the body ends with the connection.
        self._left: int | None = 0
        self._chunks: Chunks | None = None
        self._body: BodyRoom | None = None
        self.may_reuse = False

    def feed(self, data: bytes) -> HttpResponse | None:
        """The answer once it is complete; None before.

        Raises:
            CodecError: the bytes are not an HTTP answer, the answer is too large, or more bytes follow it.
        """
        if not self._status:
            data = self._head + data if self._head else data
            rest = self._read_head(data)
            if rest is None:
                return None
            data = rest
        if self._chunks is not None:
            return self._answer(bytes(self._chunks.body)) if self._chunks.feed(data) else None
        if data:
            self._pieces.append(data)
        if self._left is None:
            self._size += len(data)
            check_size(self._size, self._limit)
            return None
        self._left -= len(data)
        if self._left > 0:
            return None
        if self._left < 0:
            raise CodecError(f"an answer is {-self._left} bytes longer than its content-length")
        return self._answer(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))

    def room(self) -> memoryview | None:
        """Where the next bytes of a large body go, for `filled`; None where `feed` has to take them."""
        if self._body is None:
            if not self._status or self._chunks is not None or self._left is None or self._left < LARGE_BODY:
                return None
            self._body = BodyRoom(sum(map(len, self._pieces)) + self._left, self._pieces)
            self._pieces = []
        return self._body.rest()

    def filled(self, count: int) -> HttpResponse | None:
        """The answer once it is complete, after `count` bytes were put into `room`; None before.

        Raises:
            CodecError: more bytes follow it.
        """
        assert self._body is not None, "there is no room"
        content = self._body.filled(count)
        return None if content is None else self._answer(content)

    def end(self) -> HttpResponse | None:
        """The answer, if it ends with the connection; None if it was cut.

        Nothing announces the length of such an answer, but the service's have the MD5 of their body. A page of a shard
        that lacks its last bytes would be the end of the shard.
        """
        if not self._status or self._left is not None:
            return None
        body = b"".join(self._pieces)
        md5 = self._headers.get("x-ots-contentmd5")
        return self._answer(body) if md5 is None or md5 == content_md5(body) else None

    def _answer(self, body: bytes) -> HttpResponse:
        return HttpResponse(self._status, self._headers, body)

    def _read_head(self, data: bytes) -> bytes | None:
        """The bytes after the head; None while the head is incomplete."""
        begin = 0
        while True:
            end = data.find(_END, begin)
            if (len(data) if end < 0 else end) - begin + self._early > HEAD_LIMIT:
                raise CodecError(f"the head of an answer is longer than {HEAD_LIMIT} bytes")
            if end < 0:
                self._head = data[begin:]
                return None
            version, status, headers = parse_head(data[begin:end])
            begin, size = end + len(_END), end + len(_END) - begin
            if status >= 200:
                break
            self._early += size  # 1xx precede the answer
        self._status, self._headers = status, headers
        self._begin_body(version)
        return data[begin:]

    def _begin_body(self, version: bytes) -> None:
        connection = self._headers.get("connection")
        options = {option.strip() for option in connection.lower().split(",")} if connection else frozenset()
        self.may_reuse = "close" not in options and (version != b"HTTP/1.0" or "keep-alive" in options)
        if self._status in _NO_BODY:
            return
        coding, length = self._headers.get("transfer-encoding"), self._headers.get("content-length")
        if coding is not None:
            if coding.lower() != "chunked":
                raise CodecError(f"transfer-encoding {coding[:40]!r}: chunked is allowed")
            self._chunks = Chunks(self._limit)
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise CodecError(f"content-length {length[:40]!r} is not a number of 1 to 18 digits")
            self._left = int(length)
            check_size(self._left, self._limit)
        else:
            self._left = None
            self.may_reuse = False


def parse_head(head: bytes) -> tuple[bytes, int, dict[str, str]]:
    """Version, status and headers of an answer; the values of a repeated header are joined by commas.

    Raises:
        CodecError: the bytes are not the head of an answer.
    """
    if native is not None:
        found: tuple[bytes, int, dict[str, str]] | None = native.parse_head(head)
        if found is not None:
            return found
    return parse_head_in_python(head)


def parse_head_in_python(head: bytes) -> tuple[bytes, int, dict[str, str]]:
    """Reference implementation of `parse_head`."""
    first, *lines = head.split(b"\r\n")
    found = _STATUS_LINE.fullmatch(first)
    if found is None:
        raise CodecError(f"{first[:40]!r} is not a status line")
    headers: dict[str, str] = {}
    for line in lines:
        name, value = _header(line)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return found[1], int(found[2]), headers


# Cached: most lines are the same in every answer.
@lru_cache(maxsize=256)
def _header(line: bytes) -> tuple[str, str]:
    name, colon, value = line.decode("latin-1").partition(":")
    if not colon or not name or name != name.strip():
        raise CodecError(f"{line[:40]!r} is not a header")
    return name.lower(), value.strip()
