"""`run` with a standard output that cannot be written to."""

from __future__ import annotations

import fcntl
import os
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ots_tunnel.commands.worker_process.last_resort import OVERDUE_AFTER
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import EmulatorScene, twenty_rows
from tests.support.programs.processes import bare_environment, module
from tests.support.programs.run_process import TERMINATION_LOG, document, ended, line_with


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with twenty_rows(TunnelType.BaseData) as scene:
        yield scene


async def started(path: Path, output: int) -> Process:
    """`run` that writes into a file descriptor, which is closed here."""
    log = path.parent / TERMINATION_LOG
    log.touch()
    try:
        return await create_subprocess_exec(
            *module("ots_tunnel", "run", "--config", str(path), "--termination-log", str(log)),
            stdout=output,
            stderr=PIPE,
            env=bare_environment(),
        )
    finally:
        os.close(output)


async def test_a_closed_pipe_ends_the_worker(scene: EmulatorScene, tmp_path: Path) -> None:
    path = document(scene, tmp_path, "stdout: {}")
    gone, output = os.pipe()
    os.close(gone)

    left = await ended(await started(path, output), path)

    assert left.code == 4, left
    assert left.error == "SinkRejected: BrokenPipe: sink.stdout: the reader of standard output has closed it"
    assert left.termination_message == f"{left.error}\n"


async def test_a_write_to_a_full_disk_is_retried_and_reported(scene: EmulatorScene, tmp_path: Path) -> None:
    path = document(scene, tmp_path, "stdout: {}")

    process = await started(path, os.open("/dev/full", os.O_WRONLY))
    line = await line_with(process, "channel_failed")
    process.terminate()

    assert line["error"] == "SinkError: sink.stdout: No space left on device"
    assert "exc_info" not in line
    assert (await ended(process, path)).code == 0


async def test_a_reader_that_reads_nothing_does_not_hold_up_the_end(scene: EmulatorScene, tmp_path: Path) -> None:
    path = document(scene, tmp_path, "stdout: {}", client__drainSeconds=2, client__heartbeatTimeoutSeconds=15)
    reader, output = os.pipe()
    fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, 4096)
    os.write(output, bytes(4096))

    process = await started(path, output)
    await line_with(process, "channel_opened")
    began = time.monotonic()
    process.terminate()
    await ended(process, path)
    os.close(reader)

    assert time.monotonic() - began < 2 + OVERDUE_AFTER + 15
