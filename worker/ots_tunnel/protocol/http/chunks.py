"""A chunked body, from pieces of bytes. Source: RFC 9112, section 7.1."""

from __future__ import annotations

import re

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.limits import CHUNK_LINE_LIMIT, HEAD_LIMIT, check_size

_HEX = re.compile(rb"[0-9A-Fa-f]{1,8}")


class Chunks:
    """A chunked body; its trailers are ignored.

    Every call takes the bytes apart in this order: the rest of a chunk, the line break behind it, then the line with
    the size of the next chunk. A line that is not complete is kept for the next call.
    """

    __slots__ = ("_in_trailers", "_left", "_limit", "_line", "_trailers", "body")

    def __init__(self, limit: int) -> None:
        self.body = bytearray()
        self._limit = limit
        #: Missing bytes of the present chunk with its line break; 0 between chunks.
        self._left = 0
        self._line = b""
        self._in_trailers = False
        self._trailers = 0

    def feed(self, data: bytes) -> bool:
        """Take bytes; whether the body is complete.

        Raises:
            CodecError: they are not the form of chunks, or the body is too large.
        """
        at = 0
        while True:
            if self._left:
                at += self._take(data, at)
                if self._left:
                    return False
            end = data.find(b"\n", at)
            line = self._line + (data[at:] if end < 0 else data[at : end + 1])
            if len(line) > CHUNK_LINE_LIMIT:
                raise CodecError(
                    f"the size of a chunk is missing, or a trailer is longer than {CHUNK_LINE_LIMIT} bytes"
                )
            if end < 0:
                self._line = line
                return False
            at, self._line = end + 1, b""
            if self._read_line(line):
                if at < len(data):
                    raise CodecError(f"an answer is followed by {len(data) - at} bytes")
                return True

    def _take(self, data: bytes, at: int) -> int:
        """Take bytes of the present chunk and of the line break behind it; returns how many."""
        count = min(self._left, len(data) - at)
        of_chunk = min(count, max(0, self._left - 2))
        self.body += memoryview(data)[at : at + of_chunk]
        line_break, expected = data[at + of_chunk : at + count], b"\r\n"[max(0, 2 - self._left) :]
        if not expected.startswith(line_break):
            raise CodecError("a chunk is longer than its size")
        self._left -= count
        return count

    def _read_line(self, line: bytes) -> bool:
        """Read the line before a chunk, or a trailer; whether it is the last line of the body."""
        if self._in_trailers:
            self._trailers += len(line)
            if self._trailers > HEAD_LIMIT:
                raise CodecError(f"the trailers of an answer are longer than {HEAD_LIMIT} bytes")
            return line == b"\r\n"
        size = _chunk_size(line[:-2] if line.endswith(b"\r\n") else line)
        check_size(len(self.body) + size, self._limit)
        self._in_trailers = size == 0
        self._left = size + 2 if size else 0
        return False


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not _HEX.fullmatch(digits) or line.endswith(b"\n"):
        raise CodecError(f"{line[:40]!r} is not the size of a chunk")
    return int(digits, 16)
