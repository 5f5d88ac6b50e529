"""`ots-tunnel tail`: records are shown, and nothing is consumed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, cast

import pytest
from click.testing import CliRunner, Result

from ots_tunnel.cli import cli
from ots_tunnel.client.tunnel import TunnelClient
from ots_tunnel.commands.tail import temporary
from ots_tunnel.commands.tail_reader import TailedTunnel, TailReader
from ots_tunnel.errors import ConnectError
from ots_tunnel.model import TunnelType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableAdmin, TableSchema
from tests.support.verify_scene import BASE, INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, row, verify_scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[VerifyScene]:
    with verify_scene(tmp_path) as scene:
        scene.create()
        yield scene


def arguments(scene: VerifyScene, *more: str) -> list[str]:
    places = ["--endpoint", scene.emulator.endpoint, "--instance", INSTANCE, "--credentials", str(scene.folder)]
    return ["tail", SOURCE, *more, *places]


def tail(scene: VerifyScene, *more: str) -> Result:
    result = CliRunner().invoke(cli, arguments(scene, *more))
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def create_table(scene: VerifyScene, schema: TableSchema) -> None:
    admin = TableAdmin(scene.emulator.endpoint, INSTANCE, KEYS)
    admin.create(schema)
    admin.close()


async def delete_tunnel(scene: VerifyScene, name: str) -> None:
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    try:
        await client.delete_tunnel(SOURCE, name)
    finally:
        await client.close()


async def ask_tunnels(scene: VerifyScene, create: str | None = None) -> list[str]:
    client = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS)
    try:
        if create is not None:
            await client.create_tunnel(SOURCE, create, TunnelType.BaseAndStream)
        return [info.tunnel_name for info in await client.list_tunnels(SOURCE)]
    finally:
        await client.close()


def test_records_from_the_checkpoints_are_shown_at_every_call(scene: VerifyScene) -> None:
    scene.put(SOURCE, [row(1), row(2)])
    asyncio.run(ask_tunnels(scene, create="copy"))

    for _ in range(2):
        lines = tail(scene, "copy", "--no-follow", "-o", "jsonl").stdout.splitlines()
        assert [json.loads(line)["key"]["pk"] for line in lines] == ["k00001", "k00002"]


def test_records_as_lines_of_text(scene: VerifyScene) -> None:
    scene.put(SOURCE, [row(1, Column("x", "v" * 100, BASE), Column("y", 5, BASE))])
    asyncio.run(ask_tunnels(scene, create="copy"))

    (line,) = tail(scene, "copy", "-n", "1").stdout.splitlines()
    assert line.startswith("existing row")
    assert "PUT" in line
    assert "pk='k00001', n=1" in line
    assert "x='vvv" in line
    assert "v" * 50 not in line


def test_changes_of_a_table_are_shown_as_they_come(scene: VerifyScene) -> None:
    command = [sys.executable, "-m", "ots_tunnel", *arguments(scene, "-n", "3", "-o", "jsonl")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "temporary tunnel" in process.stderr.readline()
        scene.put(SOURCE, [row(1), row(2), row(3), row(4)])
        out, err = process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 0, err
    assert [json.loads(line)["key"]["n"] for line in out.splitlines()] == [1, 2, 3]
    assert asyncio.run(ask_tunnels(scene)) == []


def test_ctrl_c_stops_it_and_leaves_no_tunnel(scene: VerifyScene) -> None:
    command = [sys.executable, "-m", "ots_tunnel", *arguments(scene)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "temporary tunnel" in process.stderr.readline()
        process.send_signal(2)
        process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 130
    assert asyncio.run(ask_tunnels(scene)) == []


@contextmanager
def tailing(scene: VerifyScene, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "ots_tunnel", *arguments(scene, *more)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


async def test_no_channel_shows_more_than_was_asked_for(scene: VerifyScene) -> None:
    scene.emulator.call("set_partitions", INSTANCE, "many", 8)
    many = replace(SCHEMA, name="many", deviation_seconds=9_223_372_036_854)
    await asyncio.to_thread(create_table, scene, many)
    await asyncio.to_thread(scene.put, "many", [row(number) for number in range(400)])
    client, taken = TunnelClient(scene.emulator.endpoint, INSTANCE, KEYS), 0

    def take(*_: object) -> bool:
        nonlocal taken
        taken += 1
        return False

    try:
        await client.create_tunnel("many", "copy", TunnelType.BaseData)
        await asyncio.wait_for(TailReader(client, TailedTunnel("many", "copy"), follow=True, take=take).run(), 20)
    finally:
        await client.close()
    assert taken == 1


def test_a_closed_pipe_ends_it_without_an_error(scene: VerifyScene) -> None:
    with tailing(scene, "-o", "jsonl") as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert "temporary tunnel" in process.stderr.readline()
        scene.put(SOURCE, [row(1)])
        assert process.stdout.readline()
        process.stdout.close()
        scene.put(SOURCE, [row(number) for number in range(200)])
        assert process.wait(40) == 0
        assert process.stderr.read() == ""
    assert asyncio.run(ask_tunnels(scene)) == []


def test_a_vanished_tunnel_is_reported_in_one_line(scene: VerifyScene) -> None:
    scene.put(SOURCE, [row(1)])
    asyncio.run(ask_tunnels(scene, create="copy"))
    with tailing(scene, "copy") as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stdout.readline()
        asyncio.run(delete_tunnel(scene, "copy"))
        assert process.wait(40) == 10
        (line,) = process.stderr.read().splitlines()
    assert line.startswith("error: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_leaves_no_tunnel_however_it_is_stopped(scene: VerifyScene, number: signal.Signals) -> None:
    with tailing(scene) as process:
        assert process.stderr is not None
        assert "temporary tunnel" in process.stderr.readline()
        process.send_signal(number)
        process.send_signal(number)
        assert process.wait(40) == 128 + number
    assert asyncio.run(ask_tunnels(scene)) == []


async def test_a_tunnel_is_deleted_after_a_lost_answer_to_its_creation() -> None:
    class Deaf:
        deleted: ClassVar[list[str]] = []

        async def create_tunnel(self, table: str, *_: object) -> None:
            await asyncio.sleep(60)

        async def delete_tunnel(self, table: str, name: str, tunnel_id: str | None) -> None:
            self.deleted.append(name)

    async def look() -> None:
        async with temporary(cast("TunnelClient", Deaf()), "orders", earliest=False):
            raise AssertionError("it was never created")

    looking = asyncio.create_task(look())
    await asyncio.sleep(0.01)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert len(Deaf.deleted) == 1


async def test_a_tunnel_that_cannot_be_deleted_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    class Stubborn:
        async def create_tunnel(self, *_: object) -> None:
            pass

        async def delete_tunnel(self, *_: object) -> None:
            raise ConnectError("no server answers")

    async with temporary(cast("TunnelClient", Stubborn()), "orders", earliest=False) as tailed:
        pass
    err = capsys.readouterr().err
    assert f"tunnel {tailed.tunnel_name} was not deleted: no server answers" in err


def test_earliest_is_only_for_a_table(scene: VerifyScene) -> None:
    result = CliRunner().invoke(cli, arguments(scene, "copy", "--earliest"))
    assert result.exit_code == 2
    assert "--earliest" in result.output
