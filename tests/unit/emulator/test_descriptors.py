"""The limit of open files: how far it is raised, and when somebody is told."""

from __future__ import annotations

import logging
import resource

import pytest

from ots_emulator.server.descriptors import FEW_FILES, LastDescriptor, raise_limit, warning_of


class Limits:
    """A system's limits, which takes soft limits up to `most`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, most: int) -> None:
        self.soft, self.hard, self._most = soft, hard, most
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (self.soft, self.hard))
        monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: self._set(*limits))

    def _set(self, soft: int, hard: int) -> None:
        if not 0 <= soft <= self._most:
            raise ValueError("current limit exceeds maximum limit")
        self.soft = soft


@pytest.mark.parametrize(
    ("soft", "hard", "most", "raised"),
    [
        (1024, 524_288, 524_288, 524_288),
        (256, -1, 24_576, 10_240),  # macOS
        (256, -1, 256, 256),
    ],
)
def test_the_soft_limit_is_raised_as_far_as_the_system_takes_it(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, most: int, raised: int
) -> None:
    limits = Limits(monkeypatch, soft, hard, most)

    assert raise_limit() == raised == limits.soft
    assert limits.hard == hard


def test_a_low_limit_is_told_with_what_can_be_done() -> None:
    assert warning_of(FEW_FILES) is None
    assert warning_of(resource.RLIM_INFINITY) is None
    warning = warning_of(256)
    assert warning is not None
    assert "may open 256 files" in warning
    assert "some 236 connections" in warning


def test_the_last_descriptor_is_told_once_until_others_were_closed(caplog: pytest.LogCaptureFixture) -> None:
    last = LastDescriptor()
    with caplog.at_level(logging.WARNING):
        for descriptor in (98, 99, 99, 95, 99):
            last.taken(descriptor, 100)
        assert [record.action for record in caplog.records] == ["descriptors_exhausted"]
        assert repr(last) == "LastDescriptor(taken)"

        last.taken(50, 100)
        assert repr(last) == "LastDescriptor(free)"
        last.taken(99, 100)
    assert len(caplog.records) == 2


def test_a_connection_that_is_gone_has_no_descriptor() -> None:
    last = LastDescriptor()
    last.connected(None)

    assert repr(last) == "LastDescriptor(free)"
