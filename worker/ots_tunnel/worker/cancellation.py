"""Who cancelled: the caller of this task, or something inside of it."""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Whether the current task is cancelled from outside; a CancelledError then belongs to its caller."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
