"""A simulated process: its clocks, its chance, and the callbacks that wait for its turn.

What runs in it inherits it by a context variable, so a process needs no change of the code that it runs. It can be
killed (nothing of it runs any more, no clean-up either), paused (SIGSTOP: its clocks run on), or suspended with its
machine (its monotonic clock stands still, that of boot time runs on).
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.machine.determinism import CURRENT

if TYPE_CHECKING:
    from tests.simulation.machine.loop import VirtualLoop

#: Unix time at which every story begins.
EPOCH = 1_700_000_000.0

Result = TypeVar("Result")


class State(enum.Enum):
    """Whether the callbacks of a process run."""

    RUNNING = enum.auto()
    PAUSED = enum.auto()
    SUSPENDED = enum.auto()
    DEAD = enum.auto()


class Process:
    """One process of the region.

    Args:
        name: in the story; no other process of the region has it.
        chance: decides everything random inside of it.
        machine: where it runs, which has the paths to the hosts; a restarted process has the same one.
    """

    def __init__(self, loop: VirtualLoop, name: str, chance: random.Random, machine: str = "") -> None:
        self._loop = loop
        self.name = name
        self.machine = machine or name
        self.chance = chance
        self.state = State.RUNNING
        #: Seconds by which its wall clock is ahead.
        self.ahead = 0.0
        #: Seconds for which its machine was suspended.
        self.slept = 0.0
        self._suspended_at: float | None = None
        self.ready: deque[asyncio.Handle] = deque()
        self.is_queued = False
        #: Timers that fell due while the machine was suspended.
        self.held: list[asyncio.TimerHandle] = []
        #: Called when the process ends itself by `os._exit`.
        self.on_exit: Callable[[int], None] = lambda status: self.kill()
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = 64
        #: Seconds that a call in a thread takes, at least and at most.
        self.thread_seconds = (0.0002, 0.002)
        self.context = contextvars.Context()
        self.context.run(CURRENT.set, self)

    def __repr__(self) -> str:
        return f"Process({self.name}, {self.state.name})"

    @property
    def is_dead(self) -> bool:
        return self.state is State.DEAD

    @property
    def machine_sleeps(self) -> bool:
        """Whether the kernel below the process stands still as well."""
        return self.state is State.SUSPENDED

    # Clocks

    def monotonic(self) -> float:
        """Seconds that do not count suspended time."""
        now = self._loop.now if self._suspended_at is None else self._suspended_at
        return now - self.slept

    def boottime(self) -> float:
        """Seconds that count suspended time."""
        return self._loop.now

    def wall(self) -> float:
        """Unix seconds, as its machine believes."""
        return EPOCH + self._loop.now + self.ahead

    # Life

    def start(self, coroutine: Coroutine[Any, Any, Result], name: str = "main") -> asyncio.Task[Result]:
        """Run a coroutine as a task of this process."""
        return self.context.copy().run(self._loop.create_task, coroutine, name=name)

    def run(self, function: Any, *arguments: Any) -> Any:
        """Call a function at once, as code of this process."""
        return self.context.copy().run(function, *arguments)

    def kill(self) -> None:
        """Nothing of it runs any more."""
        self.state = State.DEAD
        self.ready.clear()
        self.held.clear()

    def pause(self) -> None:
        """Stop it, as SIGSTOP does."""
        if self.state is State.RUNNING:
            self.state = State.PAUSED

    def suspend(self) -> None:
        """Suspend its machine."""
        if self.state is State.RUNNING:
            self.state = State.SUSPENDED
            self._suspended_at = self._loop.now

    def resume(self) -> None:
        """End a pause, or wake the machine."""
        if self.state is State.SUSPENDED and self._suspended_at is not None:
            self.slept += self._loop.now - self._suspended_at
            self._suspended_at = None
        if self.state in (State.PAUSED, State.SUSPENDED):
            self.state = State.RUNNING
            held, self.held = self.held, []
            for timer in held:
                self._loop.schedule(timer, self)
            self._loop.wake(self)

    # Tasks

    def add_task(self, task: asyncio.Task[Any]) -> None:
        """Keep a task alive: a dead process must not be tidied up by the garbage collector in the middle of a run."""
        self._tasks.append(task)
        if len(self._tasks) > self._prune_at:
            self._tasks = self.unfinished()
            self._prune_at = 2 * len(self._tasks) + 64

    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Tasks that have not ended, in the order in which they began."""
        return [task for task in self._tasks if not task.done()]
