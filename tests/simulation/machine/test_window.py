"""Answers in pieces: what a process does not read takes no memory of it."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.machine.window import FIRST_BYTES, REST_SECONDS, Window

ANSWER = bytes(range(200)) * 2


class Stand:
    """A window, and what has happened at its ends."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.taken = 0
        self.window = Window(lambda seconds, call: self.timers.append((seconds, call)), self.got.append, self._take)

    def _take(self) -> None:
        self.taken += 1

    def wait(self) -> None:
        """Let the time pass until the next timer."""
        seconds, call = self.timers.pop(0)
        assert seconds == REST_SECONDS
        call()


def test_the_rest_of_an_answer_comes_by_itself() -> None:
    stand = Stand()
    stand.window.arrive(ANSWER)
    assert stand.got == [ANSWER[:FIRST_BYTES]]

    stand.wait()

    assert b"".join(stand.got) == ANSWER
    assert (stand.taken, stand.timers) == (0, [])


def test_the_rest_stays_away_until_the_process_reads_and_counts_as_taken_from_then_on() -> None:
    stand = Stand()
    stand.window.arrive(ANSWER)
    stand.window.pause()
    stand.wait()
    assert (stand.got, stand.window.is_taking) == ([ANSWER[:FIRST_BYTES]], False)

    stand.window.resume()
    assert (stand.taken, stand.window.is_taking) == (1, True)
    stand.wait()

    assert (b"".join(stand.got), stand.window.is_taking) == (ANSWER, False)


def test_who_reads_again_before_the_rest_is_due_gets_it_once() -> None:
    stand = Stand()
    stand.window.arrive(ANSWER)
    stand.window.pause()
    stand.window.resume()

    stand.wait()

    assert (b"".join(stand.got), stand.taken, stand.timers) == (ANSWER, 1, [])


def test_a_connection_that_reads_nothing_in_pieces_takes_nothing() -> None:
    stand = Stand()
    stand.window.pause()
    stand.window.resume()

    assert (stand.taken, stand.timers, stand.window.is_taking) == (0, [], False)
