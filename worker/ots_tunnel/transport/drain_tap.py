"""Tells when the transport below asyncio's TLS layer is empty, which asyncio reports to that layer alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class DrainTap(asyncio.BufferedProtocol):
    """Passes everything on to the protocol of a TLS layer, and reports when the transport below it is empty.

    Args:
        inner: the TLS layer's.
        on_empty: called when no byte waits in the transport below.
    """

    def __init__(self, inner: asyncio.BufferedProtocol, on_empty: Callable[[], None]) -> None:
        self._inner = inner
        self._on_empty = on_empty
        # bound once: these are called for every read
        self.get_buffer = inner.get_buffer  # type: ignore[method-assign]  # no call in between
        self.buffer_updated = inner.buffer_updated  # type: ignore[method-assign]  # no call in between

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """Called by the loop."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Called by the loop."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Called by the loop."""
        self._inner.resume_writing()
        self._on_empty()
