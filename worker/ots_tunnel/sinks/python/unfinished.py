"""Results of callbacks that show that nothing, or not all of it, is done. Pure.

Records count as processed when `process` returns. Some functions return before their work is done: one with a `yield`
in it, one that returns `map(...)`, or one that hands its work to a pool. A checkpoint would pass records that nobody
has processed. What can be awaited is awaited before (`callbacks`).

An item for each record of a page may be returned, by the ten thousand, while the event loop waits for this module. So
the types of the items are looked at first, which takes some milliseconds, and the items only where one of them may be
work.

Example: `return [pool.submit(store, record) for record in records]` is a list of Future, until each has ended without
an error.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, ItemsView, Iterable, Iterator, KeysView, ValuesView
from concurrent.futures import Future
from io import IOBase
from itertools import chain
from multiprocessing.pool import ApplyResult

#: Containers within the result that are looked into: `asyncio.wait` returns a tuple of sets.
DEPTH = 2
_CONTAINERS = (dict, KeysView, ValuesView, ItemsView, list, tuple, set, frozenset, deque)
#: Types of what may not be done.
_WORK = (Iterator, AsyncIterator, Awaitable, Future, ApplyResult, BaseException)


def unfinished(result: object, *, is_confirmed_later: bool = False) -> str:
    """What a callback returned that is not done, such as `generator`; empty where its return is the end of its work.

    Args:
        result: what it returned, awaited where it could be.
        is_confirmed_later: the user's code says itself when records are processed, so that work may go on elsewhere.
    """
    return _unfinished(result, DEPTH, is_confirmed_later=is_confirmed_later) if _may_hold_work(result) else ""


def _may_hold_work(result: object) -> bool:
    """Whether the type of the result, or of anything in it that is looked into, is one of work."""
    items: Iterable[object] = (result,)
    for _ in range(DEPTH + 1):
        found = list(items)
        kinds = set(map(type, found))
        if any(issubclass(kind, _WORK) for kind in kinds):
            return True
        containers = {kind for kind in kinds if issubclass(kind, _CONTAINERS)}
        if not containers:
            return False
        items = chain.from_iterable(_items(one) or () for one in found if type(one) in containers)
    return False


def _unfinished(result: object, depth: int, *, is_confirmed_later: bool) -> str:
    kind = type(result).__name__
    items = _items(result)
    if items is not None:
        found = (_unfinished(item, depth - 1, is_confirmed_later=is_confirmed_later) for item in items if depth)
        return next((f"{kind} of {one}" for one in found if one), "")
    if isinstance(result, Iterator | AsyncIterator):
        return "" if _is_handle(result) else kind
    if is_confirmed_later or _has_ended_well(result):
        return ""
    # an exception is what `asyncio.gather` returns in place of a result, where it is told not to raise it
    return kind if isinstance(result, Future | ApplyResult | BaseException) or inspect.isawaitable(result) else ""


def _items(result: object) -> Iterable[object] | None:
    """The items of a container, keys and values of one with keys; None for what is none."""
    if isinstance(result, dict):
        return chain(result, result.values())  # `{pool.submit(store, record): record}` is a usual form
    return result if isinstance(result, _CONTAINERS) else None


def _is_handle(result: object) -> bool:
    """Whether its items are what can be read: a file, or a database's cursor (PEP 249), whose statement has run."""
    return isinstance(result, IOBase) or hasattr(result, "rowcount")


def _has_ended_well(result: object) -> bool:
    """Whether work that was handed to somebody has ended without an error."""
    if isinstance(result, Future | asyncio.Future):
        return result.done() and not result.cancelled() and result.exception() is None
    return isinstance(result, ApplyResult) and result.ready() and result.successful()
