"""The forms of output: tables, JSON as a document or as lines, ids alone."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ots_emulator import Settings
from ots_tunnel.cli import cli
from tests.support.programs.processes import bare_environment, module
from tests.support.verify_scene import INSTANCE, SOURCE, VerifyScene, row, verify_scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[VerifyScene]:
    with verify_scene(tmp_path, Settings(init_delay=0.0)) as scene:
        scene.create()
        scene.put(SOURCE, [row(1), row(2)])
        yield scene


def place(scene: VerifyScene) -> list[str]:
    return ["--endpoint", scene.emulator.endpoint, "--instance", INSTANCE, "--credentials", str(scene.folder)]


def call(scene: VerifyScene, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, *place(scene)])


def test_quiet_prints_ids_that_other_commands_take(scene: VerifyScene) -> None:
    made = call(scene, "tunnel", "create", SOURCE, "copy", "-q").stdout
    listed = call(scene, "tunnel", "list", SOURCE, "-q").stdout
    described = call(scene, "tunnel", "describe", SOURCE, "copy", "--quiet").stdout
    channels = call(scene, "channels", SOURCE, "copy", "-q").stdout.splitlines()

    assert made == listed == described
    assert len(made.strip()) == 36
    in_full = json.loads(call(scene, "channels", SOURCE, "copy", "-o", "json").stdout)
    assert channels == [channel["channel"] for channel in in_full]
    refused = call(scene, "channels", SOURCE, "copy", "-q", "-o", "json")
    assert (refused.exit_code, "-q and -o exclude each other" in refused.output) == (2, True)


def test_json_is_one_document_and_jsonl_has_lines(scene: VerifyScene) -> None:
    assert json.loads(call(scene, "tunnel", "list", SOURCE, "-o", "json").stdout) == []
    assert call(scene, "tunnel", "list", SOURCE, "-o", "jsonl").stdout == ""
    for name in ("one", "two"):
        call(scene, "tunnel", "create", SOURCE, name)

    document = json.loads(call(scene, "tunnel", "list", SOURCE, "-o", "json").stdout)
    lines = call(scene, "tunnel", "list", SOURCE, "-o", "jsonl").stdout.splitlines()

    assert sorted(found["tunnel"] for found in document) == ["one", "two"]
    assert [json.loads(line) for line in lines] == document


def test_records_are_one_document_as_well(scene: VerifyScene) -> None:
    call(scene, "tunnel", "create", SOURCE, "copy")
    asked = ("tail", SOURCE, "copy", "--no-follow")

    assert [found["key"]["n"] for found in json.loads(call(scene, *asked, "-o", "json").stdout)] == [1, 2]
    assert len(json.loads(call(scene, *asked, "-o", "json", "-n", "1").stdout)) == 1
    assert len(call(scene, *asked, "-o", "jsonl").stdout.splitlines()) == 2
    call(scene, "tunnel", "create", SOURCE, "changes", "--type", "Stream")
    assert json.loads(call(scene, "tail", SOURCE, "changes", "--no-follow", "-o", "json").stdout) == []


def on_terminal(scene: VerifyScene, columns: int, *arguments: str) -> list[str]:
    """Lines that a command prints on a terminal of this width."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        module("ots_tunnel", *arguments, *place(scene)), stdout=its, env=bare_environment(COLUMNS=str(columns))
    )
    os.close(its)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:
        pass  # the other side of the terminal is closed
    finally:
        os.close(ours)
        assert process.wait(timeout=30) == 0
    return seen.decode().splitlines()


@pytest.mark.lasts(5)
def test_a_table_fits_the_terminal_and_wide_is_in_full(scene: VerifyScene) -> None:
    tunnel_id = call(scene, "tunnel", "create", SOURCE, "copy", "-q").stdout.strip()
    asked = ("tunnel", "list", SOURCE)

    narrow, wide = on_terminal(scene, 90, *asked), on_terminal(scene, 90, *asked, "-o", "wide")

    assert max(map(len, narrow)) <= 90
    assert narrow[1].split()[1] == f"{tunnel_id[:8]}…"
    assert wide[1].split()[1] == tunnel_id
    assert call(scene, *asked).stdout.splitlines() == wide, "what is piped into a program is not shortened"
