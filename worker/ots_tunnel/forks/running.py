"""Runs a coroutine whose process the user's code may fork."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from ots_tunnel.forks.ending import leaving_ends_a_child
from ots_tunnel.forks.loop import StayingLoop
from ots_tunnel.forks.signals import former_handlers_for_children

R = TypeVar("R")


def run(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine as `asyncio.run` does, and keep forked processes out of the loop, its connections and signals.

    A policy of the user's, such as that of `uvloop`, chooses the loop, which then goes on in children.

    Raises:
        RuntimeError: an event loop runs in this thread. Exception: what the coroutine raised.
    """
    if asyncio._get_running_loop() is not None:
        coroutine.close()
        raise RuntimeError("an event loop runs in this thread already: await the coroutine form of this call")
    with (
        leaving_ends_a_child(),  # the runner ends the tasks that are left, in which a child may be forked as well
        former_handlers_for_children(),
        _current_meanwhile(),
        asyncio.Runner(loop_factory=_new_loop) as runner,
        leaving_ends_a_child(),  # a child must not close the loop
    ):
        asyncio.set_event_loop(runner.get_loop())
        return runner.run(coroutine)


@contextlib.contextmanager
def _current_meanwhile() -> Iterator[None]:
    """Behind the block no event loop is the thread's, as behind `asyncio.run`: a policy may watch its programs."""
    try:
        yield
    finally:
        asyncio.set_event_loop(None)


def _new_loop() -> asyncio.AbstractEventLoop:
    policy = asyncio.get_event_loop_policy()
    return StayingLoop() if type(policy) is asyncio.DefaultEventLoopPolicy else policy.new_event_loop()
