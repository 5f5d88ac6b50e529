"""Results of callbacks that show that nothing, or not all of it, is done. Pure.

Records count as processed when `process` returns. Some functions return before their work is done: one with a `yield`
in it, one that returns `map(...)`, or one that hands its work to a pool. A checkpoint would pass records that nobody
has processed. What can be awaited is awaited before (`callbacks`).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future


def unfinished(result: object, *, is_confirmed_later: bool = False) -> str:
    """What a callback returned that is not done, such as `generator`; empty where its return is the end of its work.

    Args:
        result: what it returned, awaited where it could be.
        is_confirmed_later: the user's code says itself when records are processed, so that work may go on elsewhere.
    """
    kind = type(result).__name__
    if isinstance(result, Iterator | AsyncIterator):
        return kind
    if is_confirmed_later:
        return ""
    if isinstance(result, Future):
        return kind
    if isinstance(result, list | tuple | set):
        return next((f"{kind} of {type(item).__name__}" for item in result if inspect.isawaitable(item)), "")
    return ""
