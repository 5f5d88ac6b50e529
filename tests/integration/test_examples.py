"""The programs of docs/examples, and that of the README, run as they are."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.client.caller import ServiceCaller
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.tables import TableAdmin
from ots_tunnel.transport.aio import AioTransport
from tests.docs.pages import page
from tests.support.verify_scene import INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, row

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[VerifyScene]:
    with Emulator(settings=Settings(init_delay=0.01)) as emulator:
        admin = TableAdmin(emulator.endpoint, INSTANCE, KEYS)
        admin.create(replace(SCHEMA, deviation_seconds=9_223_372_036_854))
        admin.close()
        yield VerifyScene(emulator, tmp_path)


class Program:
    """A running example; `wait_for` reads its output until a line contains a text."""

    def __init__(self, path: Path, scene: VerifyScene, *first: str) -> None:
        arguments = [scene.emulator.endpoint, INSTANCE, "test-id", "test-secret", SOURCE]
        command = [sys.executable, str(path), *first, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines: list[str] = []
        self._limit = threading.Timer(120, self.process.kill)
        self._limit.start()

    def wait_for(self, *texts: str) -> None:
        missing = set(texts)
        assert self.process.stdout is not None
        while missing:
            line = self.process.stdout.readline()
            assert line, "".join(self.lines)
            self.lines.append(line)
            missing = {text for text in missing if text not in line}

    def stop(self) -> int:
        self.process.terminate()
        out, _ = self.process.communicate()
        self.lines.append(out)
        return self.process.returncode

    def close(self) -> None:
        self._limit.cancel()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.mark.lasts(8)
def test_the_tunnel_worker(scene: VerifyScene) -> None:
    scene.put(SOURCE, [row(number) for number in range(20)])
    program = Program(EXAMPLES / "tunnel_worker.py", scene)
    try:
        program.wait_for("user custom value", *(f"'k{number:05}'" for number in range(20)))
        scene.put(SOURCE, [row(20)])
        program.wait_for("'k00020'")
        assert program.stop() == 0, "".join(program.lines)
    finally:
        program.close()


def test_the_stream_sample(scene: VerifyScene) -> None:
    scene.put(SOURCE, [row(1)])
    program = Program(EXAMPLES / "stream_sample.py", scene)
    try:
        program.wait_for("begin of Stream")
        scene.put(SOURCE, [row(number) for number in range(2, 10)])
        program.wait_for(*(f"'k{number:05}'" for number in range(2, 10)))
        assert program.stop() == 0, "".join(program.lines)
    finally:
        program.close()

    text = "".join(program.lines)
    assert "'k00001'" not in text, "the record existed before the start"
    assert "end of Stream" in text


@pytest.mark.lasts(10)
def test_the_stream_client(scene: VerifyScene) -> None:
    asyncio.run(switch_stream_on(scene.emulator.endpoint))
    scene.put(SOURCE, [row(number) for number in range(10)])
    program = Program(EXAMPLES / "stream_client.py", scene)
    try:
        program.wait_for("begin of", *(f"'k{number:05}'" for number in range(10)))
        scene.emulator.split(INSTANCE, SOURCE)
        scene.put(SOURCE, [row(number) for number in range(10, 20)])
        program.wait_for("TERMINATE", *(f"'k{number:05}'" for number in range(10, 20)))
        assert program.stop() == 0, "".join(program.lines)
    finally:
        program.close()

    text = "".join(program.lines)
    assert text.count("'k00001'") == 1
    assert "STOLEN" in text


@pytest.mark.lasts(10)
def test_the_program_of_the_readme(scene: VerifyScene, tmp_path: Path) -> None:
    [block] = [each for each in page("README.md").blocks if each.language == "python"]
    path = tmp_path / "sample.py"
    path.write_text(block.text)
    asyncio.run(switch_stream_on(scene.emulator.endpoint))
    scene.put(SOURCE, [row(number) for number in range(10)])
    program = Program(path, scene, "worker1")
    try:
        program.wait_for("begin of", *(f"'k{number:05}'" for number in range(10)))
        scene.emulator.split(INSTANCE, SOURCE)
        scene.put(SOURCE, [row(number) for number in range(10, 20)])
        program.wait_for(*(f"'k{number:05}'" for number in range(10, 20)))
    finally:
        program.close()

    assert "".join(program.lines).count("'k00001'") == 1


async def switch_stream_on(endpoint: str) -> None:
    caller = ServiceCaller(AioTransport(endpoint), INSTANCE, KEYS)
    request = pb.UpdateTableRequest(table_name=SOURCE)
    request.stream_spec.enable_stream, request.stream_spec.expiration_time = True, 24
    try:
        await caller.call(TABLE_OPERATIONS["UpdateTable"], request)
    finally:
        await caller.close()
