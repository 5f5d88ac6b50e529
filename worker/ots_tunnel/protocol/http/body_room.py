"""The body of an answer while it comes: one piece of memory, which a transport fills itself.

Pieces that are joined at the end cost a copy of every page, and memory for two of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.plainbuffer.compiled import native


class BodyRoom:
    """The room of a body.

    Args:
        size: bytes of the body.
        begin: its first bytes, which have come already.
    """

    __slots__ = ("_at", "_content", "_size", "_view")

    def __init__(self, size: int, begin: Iterable[bytes] = ()) -> None:
        self._size = size
        self._at = 0
        # One byte more than the body has: what comes behind it would be taken for the next answer.
        self._content: bytes | bytearray
        if native is not None:
            found: tuple[bytes, memoryview] = native.room_for(size)
            self._content, self._view = found
        else:
            self._content = bytearray(size + 1)
            self._view = memoryview(self._content)
        for piece in begin:
            self._view[self._at : self._at + len(piece)] = piece
            self._at += len(piece)

    def __repr__(self) -> str:
        return f"BodyRoom({self._at} of {self._size} bytes)"

    def rest(self) -> memoryview:
        """Where the next bytes go; valid until `filled`, and as long as this object is there."""
        return self._view[self._at :]

    def filled(self, count: int) -> bytes | None:
        """The body once it is complete, after `count` bytes were put into `rest`; None before.

        Raises:
            CodecError: more has come than the body has.
        """
        self._at += count
        if self._at < self._size:
            return None
        if self._at > self._size:
            raise CodecError("an answer is longer than its content-length")
        self._view.release()
        return self._content if isinstance(self._content, bytes) else bytes(memoryview(self._content)[: self._size])
