"""HTTP/1.1 as bytes, as far as a client of one endpoint needs it; without input or output.

A request has a body of known length. An answer has a Content-Length, is chunked, or ends with the connection.
Source: RFC 9112, sections 4 to 7 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.message import HttpRequest, HttpResponse

#: Most bytes of a status line with all headers, and of the line with one chunk's size; own choice.
HEAD_LIMIT = 64 << 10
CHUNK_LINE_LIMIT = 1 << 10
_END = b"\r\n\r\n"
#: Line breaks in the head of a request besides those of the caller's headers: request line, Host, Accept, Content-Type,
#: Content-Length and the empty line.
_OWN_LINES = 6
_NO_BODY = frozenset((204, 304))
_HEX = re.compile(rb"[0-9A-Fa-f]{1,8}")
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
    """

    __slots__ = ("_chunks", "_head", "_headers", "_left", "_pieces", "_status", "may_reuse")

    def __init__(self) -> None:
        self._head = b""
        self._status = 0
        self._headers: Mapping[str, str] = {}
        self._pieces: list[bytes] = []
        #: Missing bytes of the body; None where the body ends with the connection.
        self._left: int | None = 0
        self._chunks: _Chunks | None = None
        self.may_reuse = False

    def feed(self, data: bytes) -> HttpResponse | None:
        """The answer once it is complete; None before.

        Raises:
            CodecError: the bytes are not an HTTP answer, or more bytes follow it.
        """
        if not self._status:
            data = self._head + data if self._head else data
            rest = self._read_head(data)
            if rest is None:
                return None
            data = rest
        if self._chunks is not None:
            return self._answer(b"".join(self._chunks.pieces)) if self._chunks.feed(data) else None
        if data:
            self._pieces.append(data)
        if self._left is None:
            return None
        self._left -= len(data)
        if self._left > 0:
            return None
        if self._left < 0:
            raise CodecError(f"an answer is {-self._left} bytes longer than its content-length")
        return self._answer(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))

    def end(self) -> HttpResponse | None:
        """The answer, if it ends with the connection; None if it was cut."""
        return self._answer(b"".join(self._pieces)) if self._status and self._left is None else None

    def _answer(self, body: bytes) -> HttpResponse:
        return HttpResponse(self._status, self._headers, body)

    def _read_head(self, data: bytes) -> bytes | None:
        """The bytes after the head; None while the head is incomplete."""
        while True:
            end = data.find(_END)
            if end < 0:
                if len(data) > HEAD_LIMIT:
                    raise CodecError(f"the head of an answer is longer than {HEAD_LIMIT} bytes")
                self._head = data
                return None
            version, status, headers = parse_head(data[:end])
            data = data[end + len(_END) :]
            if status >= 200:
                break  # 1xx precede the answer
        self._status, self._headers = status, headers
        self._begin_body(version)
        return data

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
            self._chunks = _Chunks()
        elif length is not None:
            if not (length.isascii() and length.isdigit()):
                raise CodecError(f"content-length {length[:40]!r} is not a number")
            self._left = int(length)
        else:
            self._left = None
            self.may_reuse = False


class _Chunks:
    """A chunked body; its trailers are ignored."""

    __slots__ = ("_data", "_in_trailers", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._data = b""
        self._in_trailers = False

    def feed(self, data: bytes) -> bool:
        """Whether the body is complete."""
        self._data += data
        while True:
            end = self._data.find(b"\r\n")
            if end < 0:
                if len(self._data) > CHUNK_LINE_LIMIT:
                    raise CodecError("the size of a chunk is missing")
                return False
            if self._in_trailers:
                self._data = self._data[end + 2 :]
                if end == 0:
                    if self._data:
                        raise CodecError(f"an answer is followed by {len(self._data)} bytes")
                    return True
                continue
            size = _chunk_size(self._data[:end])
            if size == 0:
                self._in_trailers = True
                self._data = self._data[end + 2 :]
                continue
            begin = end + 2
            if len(self._data) < begin + size + 2:
                return False
            if self._data[begin + size : begin + size + 2] != b"\r\n":
                raise CodecError("a chunk is longer than its size")
            self.pieces.append(self._data[begin : begin + size])
            self._data = self._data[begin + size + 2 :]


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not _HEX.fullmatch(digits):
        raise CodecError(f"{line[:40]!r} is not the size of a chunk")
    return int(digits, 16)


def parse_head(head: bytes) -> tuple[bytes, int, dict[str, str]]:
    """Version, status and headers of an answer; the values of a repeated header are joined by commas.

    Raises:
        CodecError: the bytes are not the head of an answer.
    """
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
