"""`ots-tunnel tail`: records are shown, and nothing is consumed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ots_tunnel.cli import cli
from ots_tunnel.client import TunnelClient
from ots_tunnel.model import Column, TunnelType
from tests.integration.verifying import BASE, INSTANCE, KEYS, SOURCE, Scene, row
from tests.integration.verifying import scene as make_scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with make_scene(tmp_path) as scene:
        scene.create()
        yield scene


def arguments(scene: Scene, *more: str) -> list[str]:
    places = ["--endpoint", scene.emulator.endpoint, "--instance", INSTANCE, "--credentials", str(scene.folder)]
    return ["tail", SOURCE, *more, *places]


def tail(scene: Scene, *more: str) -> Result:
    result = CliRunner().invoke(cli, arguments(scene, *more))
    assert result.exit_code == 0, (result.output, result.exception)
    return result


async def ask_tunnels(scene: Scene, create: str | None = None) -> list[str]:
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    try:
        if create is not None:
            await client.create_tunnel(SOURCE, create, TunnelType.BaseAndStream)
        return [info.tunnel_name for info in await client.list_tunnels(SOURCE)]
    finally:
        await client.close()


def test_what_a_tunnels_clients_get_next_is_shown_again_and_again(scene: Scene) -> None:
    scene.put(SOURCE, [row(1), row(2)])
    asyncio.run(ask_tunnels(scene, create="copy"))

    for _ in range(2):
        lines = tail(scene, "copy", "--no-follow", "-o", "json").stdout.splitlines()
        assert [json.loads(line)["key"]["pk"] for line in lines] == ["k00001", "k00002"]


def test_lines_for_people(scene: Scene) -> None:
    scene.put(SOURCE, [row(1, Column("x", "v" * 100, BASE), Column("y", 5, BASE))])
    asyncio.run(ask_tunnels(scene, create="copy"))

    (line,) = tail(scene, "copy", "-n", "1").stdout.splitlines()
    assert line.startswith("existing row")
    assert "PUT" in line
    assert "pk='k00001', n=1" in line
    assert "x='vvv" in line
    assert "v" * 50 not in line


def test_changes_of_a_table_are_shown_as_they_come(scene: Scene) -> None:
    command = [sys.executable, "-m", "ots_tunnel", *arguments(scene, "-n", "3", "-o", "json")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "for the time being" in process.stderr.readline()
        scene.put(SOURCE, [row(1), row(2), row(3), row(4)])
        out, err = process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 0, err
    assert [json.loads(line)["key"]["n"] for line in out.splitlines()] == [1, 2, 3]
    assert asyncio.run(ask_tunnels(scene)) == []


def test_it_is_stopped_by_ctrl_c_and_leaves_no_tunnel(scene: Scene) -> None:
    command = [sys.executable, "-m", "ots_tunnel", *arguments(scene)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "for the time being" in process.stderr.readline()
        process.send_signal(2)
        process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 130
    assert asyncio.run(ask_tunnels(scene)) == []


def test_earliest_is_for_a_table(scene: Scene) -> None:
    result = CliRunner().invoke(cli, arguments(scene, "copy", "--earliest"))
    assert result.exit_code == 2
    assert "--earliest" in result.output
