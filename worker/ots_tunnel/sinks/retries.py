"""Writes that are tried again: the pauses in between, and how often the log tells of them."""

from __future__ import annotations

import logging
import time

from ots_tunnel.config import RetryConfig
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.backoff import Backoff

logger = logging.getLogger(__name__)

#: Seconds between two warnings that writes are tried again.
WARNING_PAUSE = 60.0


def write_backoff(retry: RetryConfig) -> Backoff:
    """Pauses of the document's delivery.retry: doubling, capped, a third more or less by chance."""
    return Backoff(retry.backoff_seconds, 2.0, retry.backoff_max_seconds, 0.33)


class RetryReporter:
    """One warning a minute with the number of tries in between.

    Args:
        table: the destination that is named.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._last = float("-inf")
        self._unsaid = 0

    def report(self, code: str) -> None:
        """Tell, now or with the next warning, that a write failed and is tried again; `code` says why."""
        self._unsaid += 1
        now = time.monotonic()
        if now - self._last < WARNING_PAUSE:
            return
        logger.warning(
            "writes to the destination fail and are tried again",
            extra={"action": LogAction.WRITE_RETRIED, "table": self._table, "error": code, "retries": self._unsaid},
        )
        self._last = now
        self._unsaid = 0
