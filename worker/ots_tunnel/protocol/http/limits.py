"""Most bytes of the parts of an answer: whoever sends more is not the service."""

from __future__ import annotations

from ots_tunnel.errors import CodecError

#: Most bytes of a status line with all headers, and of the line with one chunk's size; own choice.
HEAD_LIMIT = 64 << 10
CHUNK_LINE_LIMIT = 1 << 10
#: Most bytes of the body of an answer; own choice. The service keeps pages at 4 MiB; a page of existing rows may be
#: larger, because it holds at least one row. More than this is no answer of the service, and would take the memory.
ANSWER_LIMIT = 64 << 20


def check_size(size: int, limit: int = ANSWER_LIMIT) -> None:
    """Check the size of an answer's body, bytes.

    Raises:
        CodecError: it is above the limit.
    """
    if size > limit:
        raise CodecError(f"an answer of {size} bytes or more; allowed are {limit}")
