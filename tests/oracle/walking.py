"""Runs a program that walks through every call of a vendor's SDK on a new emulator and reports each step."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ots_emulator import Emulator, Settings
from tests.support.programs.go_program import walk_command


@dataclass(frozen=True)
class Walk:
    """The report of one walk.

    Args:
        sections: per section its steps with their errors, or None.
        summary: its last line.
    """

    sections: dict[str, dict[str, str | None]]
    summary: dict[str, Any]

    @property
    def calls(self) -> set[str]:
        """The calls that were answered."""
        return set(self.summary["calls"])

    def check(self, section: str) -> None:
        """Assert that every step of a section succeeded."""
        failed = [f"{name}: {detail}" for name, detail in self.sections[section].items() if detail is not None]
        assert not failed, "\n".join(["failed steps:", *failed])


def take_walk(program: Path, *, seconds: float) -> Walk:
    """Run the program for at most a number of seconds."""
    keys = {"test-id": "test-secret"}
    with Emulator({"demo": keys, "second": keys}, settings=Settings(init_delay=0.01)) as emulator:
        command = walk_command(program, emulator.endpoint, emulator.admin_url)
        walked = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert walked.returncode == 0, walked.stderr
    *steps, last = map(json.loads, walked.stdout.splitlines())
    sections: dict[str, dict[str, str | None]] = {}
    for step in steps:
        section, _, name = step["step"].partition("/")
        sections.setdefault(section, {})[name] = None if step["ok"] else step["detail"]
    return Walk(sections, last)
