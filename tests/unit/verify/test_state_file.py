"""The state file: written at most once a second, replaced atomically, readable by its owner only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.verify.state_file import StateFile, read_state_file


def test_the_file_is_written_at_most_once_a_second_and_holds_the_newest(tmp_path: Path) -> None:
    now = 100.0
    text = "a"
    path = tmp_path / "state.json"
    file = StateFile(path, lambda: text, clock=lambda: now)
    file.changed()
    assert path.read_text() == "a"

    text, now = "b", 100.9
    file.changed()
    file.write_if_due()
    assert path.read_text() == "a"

    now = 101.0
    file.write_if_due()
    assert path.read_text() == "b"

    text, now = "c", 200.0
    file.write_if_due()
    assert path.read_text() == "b", "nothing was said to have changed"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    file.remove()
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_former_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    path.write_text("former")
    file = StateFile(path, lambda: "new")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match=r"state\.json: the state cannot be written: No space left on device"):
        file.write()

    assert path.read_text() == "former"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_no_state(tmp_path: Path) -> None:
    assert read_state_file(tmp_path / "none") is None
    with pytest.raises(ConfigError, match="Is a directory"):
        read_state_file(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not a state file"):
        read_state_file(tmp_path / "binary")
