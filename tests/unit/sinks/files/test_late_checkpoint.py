"""A checkpoint whose answer was lost is carried out late, while the channel's next time replaces files behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ots_tunnel.client.page import Page
from ots_tunnel.errors import ConnectionLost, TunnelError
from ots_tunnel.fence import Guard
from ots_tunnel.model import ChannelStatus, Checkpoint, TunnelId
from ots_tunnel.protocol.backoff import Backoff
from ots_tunnel.protocol.service_codes import service_error
from ots_tunnel.sinks import Batch, Confirmation
from ots_tunnel.sinks.files import FilesSink
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.json_lines import JsonLines
from ots_tunnel.sinks.files.settings import FileSettings
from ots_tunnel.sinks.json_bytes import json_lines
from tests.support.channel_scene import ChannelScene, ScriptedService, at
from tests.support.waiting import until
from tests.unit.sinks.files.conftest import change, contents

#: Seconds; D of docs/architecture.md rule 4, and the time after which a lost checkpoint is carried out.
D, LATE = 1.0, 0.5


@dataclass
class LateService(ScriptedService):
    """While there is an `error` in place of an answer, checkpoints are carried out late."""

    error: TunnelError | None = None
    late: int = 0

    async def checkpoint(
        self, *ids_and_checkpoint: object, timeout: float, before_send: Callable[[], None] | None = None
    ) -> None:
        if self.error is not None:
            asyncio.get_running_loop().call_later(LATE, self._carry_out, ids_and_checkpoint[-1])
            self.late += 1
            raise self.error
        await super().checkpoint(*ids_and_checkpoint, timeout=timeout, before_send=before_send)

    def _carry_out(self, checkpoint: Checkpoint) -> None:
        self.late -= 1
        if checkpoint.sequence_number > self.stored.sequence_number:
            self.stored = checkpoint


class CountingSink(FilesSink):
    """Knows how many records lie in its files."""

    taken = 0

    async def take(self, batch: Batch, guard: Guard) -> Confirmation:
        confirmation = await super().take(batch, guard)
        self.taken += len(batch.records)
        return confirmation


def page_of(*numbers: int, following: str, may_more: bool = True) -> Page:
    return Page([change(number) for number in numbers], at(following), may_more, 1000, None)


def sink(folder: Path, max_bytes: int) -> CountingSink:
    backoff = Backoff(0.01, 2, 0.05, 0)
    return CountingSink(TunnelId("t"), FileSettings(FolderStore(folder), JsonLines(json_lines), max_bytes, 60, backoff))


PROXY_GAVE_UP = service_error("OTSServerUnavailable", "bad gateway", http_status=502)


@pytest.mark.parametrize("error", [ConnectionLost("no answer"), PROXY_GAVE_UP], ids=["lost", "of a proxy"])
async def test_no_late_checkpoint_is_behind_what_a_replay_replaces(error: TunnelError, tmp_path: Path) -> None:
    pages = {"t0": page_of(1, following="t1"), "t1": page_of(2, following="t2"), "t2": page_of(following="t2")}
    service = LateService(pages, latency={"read": 0.02}, error=error)
    one_file = sink(tmp_path, max_bytes=1 << 20)
    first = ChannelScene(service, one_file, interval=D, timeout=4 * D)
    first.open()
    await until(lambda: one_file.taken == 2)
    first.notify(ChannelStatus.CLOSING, 2)
    await first.over()
    assert contents(tmp_path) == [[1, 2]]

    service.error = None
    second = ChannelScene(service, sink(tmp_path, max_bytes=1))  # a shorter file replaces the longer one
    second.open()
    await until(lambda: contents(tmp_path) == [[1]] or not service.late)
    await until(lambda: not service.late)
    second.cancel()  # killed before it has stored a checkpoint

    service.events.clear()
    third = ChannelScene(service, sink(tmp_path, max_bytes=1), checkpoint_interval=0.05)
    third.open()
    await until(lambda: service.events.count("read t2") > 1)
    third.cancel()
    assert sorted(number for file in contents(tmp_path) for number in file) == [1, 2]
