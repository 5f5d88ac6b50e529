"""What a measurement says where the machine lacks something."""

from __future__ import annotations

import os

import pytest

from tests.bench import start
from tests.bench.start import MachineUnfit, built, options_of, parser_of, two_cores
from tests.support.programs.go_program import GoUnavailable
from tests.support.programs.java_program import JavaUnavailable


@pytest.mark.parametrize("reason", [GoUnavailable("no Go of 1.25"), JavaUnavailable("javac is not installed")])
def test_a_worker_that_cannot_be_built_is_told_with_its_reason(reason: Exception) -> None:
    def build() -> str:
        raise reason

    with pytest.raises(MachineUnfit, match=f"one of the vendor's workers cannot be built: {reason}"):
        built(build)


def test_one_core_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "native", object())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    with pytest.raises(MachineUnfit, match="two cores are needed"):
        two_cores()


def test_a_codec_in_python_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "native", None)
    with pytest.raises(MachineUnfit, match="compiled codec is missing"):
        two_cores()


def test_a_trial_has_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--quick", "--only", "b"])
    options = options_of(parser_of("Measure.", ["a", "b"], minutes=9))

    assert (options.rounds, options.minutes, options.only) == (1, 9, ["b"])


@pytest.mark.parametrize(("arguments", "says"), [(["--rounds", "0"], "--rounds: at least 1"), (["--only", "c"], "'c'")])
def test_a_wrong_option_is_named(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    with pytest.raises(SystemExit):
        options_of(parser_of("Measure.", ["a", "b"], minutes=9))

    assert says in capsys.readouterr().err
