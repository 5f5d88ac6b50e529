"""`ots-tunnel run --exit-when-complete` that ends before everything is read."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import twenty_rows
from tests.support.programs.run_process import document, ended, line_with, start


@pytest.mark.lasts(5)
async def test_a_drain_before_it_is_complete_is_not_success(tmp_path: Path) -> None:
    async with twenty_rows(TunnelType.Stream) as scene:
        path = document(scene, tmp_path)
        process = await start(path, "--exit-when-complete")
        await line_with(process, "channel_opened")
        process.send_signal(signal.SIGTERM)

        left = await ended(process, path, 50)

    assert left.code == 143, left
    assert "before everything was read" in left.termination_message
