"""Runs a coroutine whose process the user's code may fork."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ots_tunnel.forks.ending import leaving_ends_a_child
from ots_tunnel.forks.loop import StayingLoop
from ots_tunnel.forks.signals import former_handlers_for_children

R = TypeVar("R")


def run(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine as `asyncio.run` does, and keep forked processes out of the loop, its connections and signals.

    Raises:
        Exception: what the coroutine raised.
    """
    with (
        leaving_ends_a_child(),  # the runner ends the tasks that are left, in which a child may be forked as well
        former_handlers_for_children(),
        asyncio.Runner(loop_factory=StayingLoop) as runner,
        leaving_ends_a_child(),  # a child must not close the loop
    ):
        return runner.run(coroutine)
