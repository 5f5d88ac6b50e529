"""Retries of writes, the same in every sink: the pauses in between, and the warning."""

from __future__ import annotations

import logging

from ots_tunnel.config import RetryConfig
from ots_tunnel.log_actions import LogAction
from ots_tunnel.protocol.backoff import Backoff

logger = logging.getLogger(__name__)

#: Growth of a pause, and the share by which chance changes it: clients that failed together do not retry together.
FACTOR, JITTER = 2.0, 0.33


def write_backoff(retry: RetryConfig) -> Backoff:
    """Pauses of the document's `delivery.retry`."""
    return Backoff(retry.backoff_seconds, FACTOR, retry.backoff_max_seconds, JITTER)


def log_retry(sentence: str, error: str, **destination: str) -> None:
    """Warn that a write failed and will be tried again.

    The line holds no pause and no number of tries: lines that are equal are written once a minute, with how many were
    left out (`ots_tunnel.logs.RepeatedWarnings`).

    Args:
        error: code or text, the same for every failure of one kind.
        destination: further keys that name it, such as `table` or `topic`.
    """
    logger.warning(sentence, extra={"action": LogAction.WRITE_RETRIED, "error": error, **destination})
