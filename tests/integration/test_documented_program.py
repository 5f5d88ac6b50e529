"""The program of docs/python.md consumes a tunnel as it is."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.tables import TableAdmin
from tests.docs.pages import page
from tests.support.verify_scene import INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, row


@pytest.mark.lasts(32)
def test_the_program_consumes(tmp_path: Path) -> None:
    with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        admin = TableAdmin(emulator.endpoint, INSTANCE, KEYS)
        admin.create(replace(SCHEMA, deviation_seconds=9_223_372_036_854))
        admin.close()
        VerifyScene(emulator, tmp_path).put(SOURCE, [row(number) for number in range(3)])
        program = tmp_path / "program.py"
        program.write_text(
            page("docs/python.md")
            .block("How do I consume a tunnel?", "python")
            .replace("http://127.0.0.1:8300", emulator.endpoint)
        )
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
