"""Statuses by which a proxy before a service answers in its place, and which a later try may not meet again."""

from __future__ import annotations

from typing import Final

#: Statuses by which a service, or a proxy before it, says that it has not begun: RFC 8470 and RFC 6585. 408 is not one
#: of them: proxies use it also for a service that did not answer in time.
NOT_BEGUN: Final = frozenset((425, 429))
REQUEST_TIMEOUT: Final = 408


def may_pass(status: int) -> bool:
    """Whether a status says nothing against the request itself, so that it may succeed later."""
    return status >= 500 or status == REQUEST_TIMEOUT or status in NOT_BEGUN
