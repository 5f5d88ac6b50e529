"""The choice of a sink and its middleware: no wrapper breaks a guarantee of another one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ots_tunnel.config import SinkConfig, WorkerConfig
from ots_tunnel.model import ChannelType, Token
from ots_tunnel.sinks.choice import IMPLEMENTATIONS, open_sink
from ots_tunnel.sinks.middleware.base import deferred
from tests.support.guards import OpenGuard
from tests.unit.sinks.files.conftest import CHANNEL, changes, contents


def document(folder: Path, **delivery: Any) -> WorkerConfig:
    (folder / "accessKeyId").write_text("id")
    (folder / "accessKeySecret").write_text("secret")
    source = {
        "endpoint": "http://nowhere",
        "instance": "demo",
        "table": "orders",
        "tunnelName": "t",
        "tunnelId": "t1",
        "credentials": {"directory": str(folder)},
    }
    files = {"url": f"file://{folder}/out", "maxFileBytes": 65_536, "maxFileSeconds": 1}
    return WorkerConfig.model_validate({"source": source, "sink": {"files": files}, "delivery": delivery})


def test_every_member_of_the_document_has_an_implementation() -> None:
    assert list(IMPLEMENTATIONS) == list(SinkConfig.model_fields)


@pytest.mark.parametrize("kind", IMPLEMENTATIONS)
def test_every_implementation_is_made_from_the_document(kind: str) -> None:
    assert callable(IMPLEMENTATIONS[kind].load().from_config)


async def test_a_page_that_takes_longer_than_a_file_is_one_file(tmp_path: Path) -> None:
    sink = open_sink(document(tmp_path, rateLimit={"rowsPerSecond": 10}))
    await sink.open()
    await sink.begin(CHANNEL, ChannelType.STREAM, Token("t0"))

    for number, first in ((1, 0), (2, 12)):
        batch = replace(changes(*range(first, first + 12)), page=number)
        confirmation = await deferred(sink).take(batch, OpenGuard())
        await asyncio.wait_for(confirmation, 10)
        sink.checkpointed(CHANNEL, number)
    await sink.end(CHANNEL, abandoned=False)

    assert contents(tmp_path) == [list(range(12)), list(range(12, 24))]
