"""What a sink knows of its destination."""

from __future__ import annotations

import pytest

from ots_tunnel.sinks.contact import Contact, FailingWrite, Writes


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_known_before_the_first_answer() -> None:
    assert Writes().contact == Contact(looked=None, confirmed=None, failing=None)


def test_looks_and_confirmations_have_their_time() -> None:
    clock = Clock()
    writes = Writes(clock)
    writes.looked()
    clock.now = 107.0
    writes.confirmed()

    assert writes.contact == Contact(looked=100.0, confirmed=107.0)


def test_a_write_fails_since_its_first_failure_in_a_row() -> None:
    clock = Clock()
    writes = Writes(clock)
    with writes.tries() as tries:
        assert writes.contact.failing is None
        tries.failed("the service does not answer", "no answer", url="http://hook")
        clock.now = 160.0
        tries.failed("the service does not answer", "HTTP 503", url="http://hook")

        assert writes.contact.failing == FailingWrite(100.0, "HTTP 503")

        tries.advanced()
        assert writes.contact.failing is None
        tries.failed("the service does not answer", "HTTP 503", url="http://hook")

        assert writes.contact.failing == FailingWrite(160.0, "HTTP 503")

    assert writes.contact.failing is None


def test_the_write_that_fails_longest_is_shown() -> None:
    clock = Clock()
    writes = Writes(clock)
    with writes.tries() as first, writes.tries() as second:
        first.failed("no", "first", topic="t")
        clock.now = 101.0
        second.failed("no", "second", topic="t")

        assert writes.contact.failing == FailingWrite(100.0, "first")


def test_a_write_that_is_given_up_fails_no_more() -> None:
    writes = Writes()

    def abandon() -> None:
        with writes.tries() as tries:
            tries.failed("no", "no", topic="t")
            raise RuntimeError("abandoned")

    with pytest.raises(RuntimeError, match="abandoned"):
        abandon()
    assert writes.contact.failing is None
