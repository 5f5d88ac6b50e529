"""Requests and responses as values; transports send the one and return the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class SummedBody(NamedTuple):
    """The body of a request, whose MD5 is known."""

    content: bytes
    md5: bytes

    def __repr__(self) -> str:
        return f"SummedBody({len(self.content)} bytes)"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A POST to an instance endpoint: absolute path, headers, body."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"HttpRequest({self.path}, {len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer; header names are lower-case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {len(self.body)} bytes)"
