"""Everything that differs from run to run comes from the simulated process that asks: clocks, chance, random bytes.

`install` has to come before the first import of the product, because its default arguments hold the functions of
`time` and `random`. Outside of a simulated process they still give the machine's values.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from tests.simulation.machine.process import Process

#: The simulated process whose code runs; tasks and callbacks inherit it.
CURRENT: ContextVar[Process | None] = ContextVar("simulated process", default=None)


class ThreadSleep(threading.local):
    """How the running thread sleeps; `asyncio.to_thread` replaces the context, but not the thread."""

    #: None in the thread of the event loop, which must not sleep.
    of: Callable[[float], None] | None = None


SLEEP = ThreadSleep()

#: Seconds of the machine, for measuring the simulation itself.
wall_seconds = time.perf_counter

#: Modules whose default arguments would keep the machine's clocks.
_LATE = ("ots_tunnel", "ots_emulator", "ots_tunnel_operator")
_CHANCE = ("random", "uniform", "randrange", "randint", "choice", "choices", "sample", "shuffle", "getrandbits")


class BlockingSleep(RuntimeError):
    """A simulated process has called `time.sleep` outside of a thread, which would block its event loop."""


class ProcessEnded(BaseException):
    """A simulated process has ended itself by `os._exit`: nothing of it runs after this."""


def fix_hashes(module: str) -> None:
    """Start `python -m module` again with fixed hashes and the same arguments, unless they are fixed already."""
    if sys.flags.hash_randomization:
        command = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})


def install() -> None:
    """Replace the sources of nondeterminism in this interpreter.

    Raises:
        RuntimeError: the product is imported already, or hashes are random (PYTHONHASHSEED is not 0).
    """
    early = sorted(name for name in sys.modules if name in _LATE)
    if early:
        raise RuntimeError(f"{', '.join(early)}: imported before tests.simulation.machine.determinism was installed")
    if sys.flags.hash_randomization:
        raise RuntimeError("hashes are random: start the interpreter with PYTHONHASHSEED=0")
    _install_clocks()
    for name in _CHANCE:
        setattr(random, name, _chance(name, getattr(random, name)))
    real_bytes = os.urandom

    def urandom(size: int) -> bytes:
        process = CURRENT.get()
        return real_bytes(size) if process is None else process.chance.randbytes(size)

    real_exit = os._exit

    def end_process(status: int) -> NoReturn:
        process = CURRENT.get()
        if process is None:
            real_exit(status)
        process.on_exit(status)
        raise ProcessEnded(status)

    os._exit = end_process
    os.urandom = urandom
    random._urandom = urandom  # `secrets` and SystemRandom read by this private name, which was bound at import


def _install_clocks() -> None:
    names = {"time": "wall", "monotonic": "monotonic", "perf_counter": "monotonic", "thread_time": "monotonic"}
    for name, clock in names.items():
        setattr(time, name, _clock(clock, getattr(time, name)))
    for name, clock in (("time_ns", "wall"), ("monotonic_ns", "monotonic"), ("perf_counter_ns", "monotonic")):
        setattr(time, name, _clock_ns(clock, getattr(time, name)))
    real_gettime, real_sleep = time.clock_gettime, time.sleep

    def clock_gettime(which: int) -> float:
        process = CURRENT.get()
        if process is None:
            return real_gettime(which)
        if which == time.CLOCK_REALTIME:
            return process.wall()
        return process.boottime() if which == time.CLOCK_BOOTTIME else process.monotonic()

    def sleep(seconds: float) -> None:
        if CURRENT.get() is None:
            real_sleep(seconds)
        elif (sleep_in_thread := SLEEP.of) is not None:
            sleep_in_thread(seconds)
        else:
            raise BlockingSleep(f"time.sleep({seconds}) in the event loop")

    time.clock_gettime = clock_gettime
    time.sleep = sleep


def _clock(name: str, real: Callable[[], float]) -> Callable[[], float]:
    def read() -> float:
        process = CURRENT.get()
        return real() if process is None else getattr(process, name)()

    return read


def _clock_ns(name: str, real: Callable[[], int]) -> Callable[[], int]:
    def read() -> int:
        process = CURRENT.get()
        return real() if process is None else int(getattr(process, name)() * 1e9)

    return read


def _chance(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def draw(*arguments: Any, **options: Any) -> Any:
        process = CURRENT.get()
        return real(*arguments, **options) if process is None else getattr(process.chance, name)(*arguments, **options)

    return draw
