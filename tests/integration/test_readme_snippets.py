"""What the README tells people to copy works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.config import load_config
from ots_tunnel.job_file import load_job
from ots_tunnel.tables import TableAdmin
from tests.support.verify_scene import INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, row

README = (Path(__file__).parents[2] / "README.md").read_text()


def block(heading: str, language: str) -> str:
    """The first block of a language behind a line."""
    behind = README.partition(f"\n{heading}\n")[2]
    found = re.search(rf"```{language}\n(.*?)```", behind, re.DOTALL)
    assert found, f"no {language} behind {heading!r}"
    return found[1]


def test_the_workers_document_is_right(tmp_path: Path) -> None:
    path = tmp_path / "worker.yaml"
    path.write_text(block("A worker's document:", "yaml"))

    assert load_config(path).sink.kind == "files"


def test_the_jobs_file_is_right(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(block("### A table by one command", "json"))

    assert load_job(path).writer.batch_write_count == 100


@pytest.mark.parametrize("commands", re.findall(r"^ots-tunnel (.*?) +#", README, re.MULTILINE))
def test_the_commands_are_there(commands: str) -> None:
    known = [word for word in commands.split() if word.isalpha() and word != "orders"]

    done = subprocess.run(
        [sys.executable, "-m", "ots_tunnel", *known, "--help"], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    for option in re.findall(r"--[a-z-]+", commands):
        assert option in done.stdout


def test_the_program_consumes(tmp_path: Path) -> None:
    with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        admin = TableAdmin(emulator.endpoint, INSTANCE, KEYS)
        admin.create(replace(SCHEMA, deviation_seconds=9_223_372_036_854))
        admin.close()
        VerifyScene(emulator, tmp_path).put(SOURCE, [row(number) for number in range(3)])
        program = tmp_path / "program.py"
        program.write_text(block("### In Python", "python").replace("http://127.0.0.1:8300", emulator.endpoint))
        process = subprocess.Popen(
            [sys.executable, "-u", str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        limit = threading.Timer(50, process.kill)
        limit.start()
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            process.terminate()
            rest = process.communicate()[0]
        finally:
            limit.cancel()
            process.kill()
            process.wait()

    assert process.returncode == 0, rest
    assert [line.split(" ", 1)[0] for line in lines] == ["PUT"] * 3, [*lines, rest]
