"""What a simulated disk holds after a loss of power; each story in an interpreter whose calls of `os` are replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
#: Writes a file, flushes what `sys.argv` says, loses the power, and prints what is there and what was told.
PROGRAM = """
import json, os, random, sys
from pathlib import Path
from tests.simulation.machine import determinism
from tests.simulation.machine.disk import Disk, install_disk
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process

folder, flushed, left = Path(sys.argv[1]), sys.argv[2].split(), set()
told = []
for number in range(12):
    place = folder / str(number)
    place.mkdir()
    disk = Disk(
        place / "disk", random.Random(number),
        lambda path, who: told.append(f"finished {path.name}"),
        lambda path: told.append(f"gone {path.name}"),
        lambda path: told.append(f"back {path.name}"),
    )
    install_disk(disk)

    def flush_folder():
        handle = os.open(disk.root, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)

    def work():
        hidden, target = disk.root / ".filling", disk.root / "file"
        with open(hidden, "wb") as file:
            file.write(b"whole")
            file.flush()
            if "bytes" in flushed:
                os.fsync(file.fileno())
        if "hidden" in flushed:
            flush_folder()
        os.replace(hidden, target)
        if "entry" in flushed:
            flush_folder()
        if "unlink" in flushed:
            os.unlink(target)

    process = Process(VirtualLoop(random.Random(1)), "w0.1", random.Random(1))
    process.run(work)
    disk.lose_power()
    left.add(" ".join(f"{path.name}={path.read_text()}" for path in sorted(disk.root.iterdir())))
print(json.dumps({"left": sorted(left), "told": sorted(set(told))}))
"""


def lose_power(folder: Path, flushed: str) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", PROGRAM, str(folder), flushed]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_is_flushed_survives(tmp_path: Path) -> None:
    assert lose_power(tmp_path, "bytes entry") == {"left": ["file=whole"], "told": ["finished file"]}


@pytest.mark.parametrize(
    ("flushed", "left"),
    [
        ("entry", {"file=", "file=whole"}),
        ("bytes", {"", "file=whole"}),
        ("", {"", "file=", "file=whole"}),
        ("bytes entry unlink", {"", "file=whole"}),
        ("bytes hidden", {".filling=whole", "file=whole"}),
        ("bytes hidden unlink", {"", ".filling=whole"}),
    ],
)
def test_what_is_not_flushed_survives_by_chance(tmp_path: Path, flushed: str, left: set[str]) -> None:
    assert set(lose_power(tmp_path, flushed)["left"]) == left


def test_a_removal_that_was_not_flushed_is_told_as_a_return(tmp_path: Path) -> None:
    assert lose_power(tmp_path, "bytes entry unlink")["told"] == ["back file", "finished file", "gone file"]
