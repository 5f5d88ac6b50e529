"""The terminal while a live view is shown: another screen without a cursor, and keys that need no Enter."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"


@contextlib.contextmanager
def taken_terminal() -> Iterator[None]:
    """Use the other screen; whatever ends the block, the terminal is left as it was.

    A termination by signal ends the block as well.
    """
    sys.stdout.write(_ENTER)
    sys.stdout.flush()
    before = signal.signal(signal.SIGTERM, _end)
    try:
        with _single_keys():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def draw(lines: Sequence[str]) -> None:
    """Show lines in place of the ones before, without a flicker: each is written over, and the rest is erased."""
    sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in lines[:-1]) + f"{lines[-1]}\x1b[K\x1b[J")
    sys.stdout.flush()


def wait_for_key(seconds: float) -> str:
    """The key that is pressed within a time; empty without one, or after a signal whose handler returned."""
    with _woken_by_signals() as woken:
        keys = [sys.stdin] if sys.stdin.isatty() else []
        ready, _, _ = select.select([*keys, woken], [], [], seconds)
    return os.read(sys.stdin.fileno(), 1).decode(errors="replace") if sys.stdin in ready else ""


@contextlib.contextmanager
def _woken_by_signals() -> Iterator[socket.socket]:
    """What becomes readable with any signal.

    Python runs handlers between two of its own instructions. A signal that comes after the last of them and before the
    system call would be looked at when the call ends, which is an interval later.
    """
    woken, wakes = socket.socketpair()
    with woken, wakes:
        wakes.setblocking(False)
        before = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        try:
            yield woken
        finally:
            signal.set_wakeup_fd(before)


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


@contextlib.contextmanager
def _single_keys() -> Iterator[None]:
    """Read keys at once and without an echo, where standard input is a terminal that can do so."""
    if not sys.stdin.isatty():
        yield
        return
    try:
        import termios
        import tty
    except ImportError:  # Windows: keys arrive with Enter
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
