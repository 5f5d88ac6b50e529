"""How much of what it can do a worker does. Pure.

The share of time in which it writes to its sink tells nothing before a rate limit is reached: at half of it a worker
hardly ever waits, and looks idle; with half as many workers each of them would be at the limit. So the share of the
limit counts where it is the larger one.

Example: 600 rows/s with delivery.rateLimit 1000 and a busyPercent of 10 are 0.6.
"""

from __future__ import annotations

from collections.abc import Iterator

from ots_tunnel_operator.api.spec import TunnelSpec
from ots_tunnel_operator.world.report import WorkerReport


def busy_share(spec: TunnelSpec, report: WorkerReport) -> float | None:
    """The share, 0 to 1; None while the worker does not tell."""
    if report.busy_percent is None or report.rows_per_second is None:
        return None
    used = (report.rows_per_second / limit for limit in _limits(spec))
    return min(1.0, max((report.busy_percent / 100, *used)))


def worker_limit(spec: TunnelSpec) -> int | None:
    """Most rows per second of one worker; None without a limit."""
    return min(_limits(spec), default=None)


def _limits(spec: TunnelSpec) -> Iterator[int]:
    """Rows per second that a worker may process."""
    limits = [spec.source.rate_limit]
    if spec.delivery.filter is None:
        # of rows that a filter holds back, the limit of the writes knows nothing
        limits.append(spec.delivery.rate_limit)
    yield from (found for limit in limits if limit is not None and (found := limit.rows_per_second_per_worker))
