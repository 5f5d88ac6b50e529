from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.simulation import first_seed as module
from tests.simulation.first_seed import WITHOUT_GIT, first_seed

WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")


def test_a_number_is_taken_as_it_is() -> None:
    assert first_seed("17") == 17


@pytest.mark.parametrize("text", ["-1", "", "seventeen", "1.5"])
def test_another_word_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--start: found"):
        first_seed(text)


def test_every_committed_tree_has_its_own_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)

    def commit(text: str) -> int:
        (tmp_path / "file").write_text(text)
        for command in (("init", "-q"), ("add", "file"), (*WHO, "commit", "-q", "-m", text, "--allow-empty")):
            subprocess.run(("git", *command), cwd=tmp_path, check=True)
        return first_seed("tree")

    first = commit("a")

    assert commit("b") != first
    assert commit("a") == first


def test_files_without_a_repository_have_a_start_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert first_seed("tree") == WITHOUT_GIT

    monkeypatch.setenv("PATH", str(tmp_path))
    assert first_seed("tree") == WITHOUT_GIT
