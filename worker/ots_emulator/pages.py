"""Cache of finished pages.

A page is cached under a key with everything it depends on. When its rows change, its key is never used again, and the
page leaves the cache when others need its place.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Hashable

from ots_tunnel.protocol.http.signing import content_md5


class Body:
    """The body of an answer with its digest and its compressed form, which cost more than joining a page."""

    __slots__ = ("_deflated", "_digest", "content")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._digest = ""
        self._deflated = b""

    def __repr__(self) -> str:
        return f"Body({len(self.content)} bytes)"

    @property
    def digest(self) -> str:
        """Its ``x-ots-contentmd5``."""
        if not self._digest:
            self._digest = content_md5(self.content)
        return self._digest

    @property
    def deflated(self) -> bytes:
        """The compressed body."""
        if not self._deflated:
            self._deflated = zlib.compress(self.content)
        return self._deflated


class PageCache:
    """The pages that were used last, up to a number of bytes."""

    def __init__(self) -> None:
        self._pages: OrderedDict[Hashable, Body] = OrderedDict()
        self._size = 0

    def __repr__(self) -> str:
        return f"PageCache({len(self._pages)} pages, {self._size} bytes)"

    def __len__(self) -> int:
        return len(self._pages)

    def clear(self) -> None:
        """Remove every page."""
        self._pages.clear()
        self._size = 0

    def get(self, key: Hashable) -> Body | None:
        """Return a page, None if it is not cached."""
        page = self._pages.get(key)
        if page is not None:
            self._pages.move_to_end(key)
        return page

    def put(self, key: Hashable, page: Body, limit: int) -> None:
        """Add a page that is not cached; those unused for longest are removed to make room.

        Args:
            limit: most bytes of all pages, without their compressed forms, which are smaller.
        """
        self._pages[key] = page
        self._size += len(page.content)
        while self._size > limit:
            _, gone = self._pages.popitem(last=False)
            self._size -= len(gone.content)
