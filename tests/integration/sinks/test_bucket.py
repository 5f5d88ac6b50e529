"""A worker whose files go to a bucket: killed once, with a store that fails now and then."""

from __future__ import annotations

import asyncio
import json
import signal
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ots_emulator import Emulator, Settings
from ots_tunnel.model import TunnelType
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.programs.run_process import ended, start
from tests.support.sinks.s3_store import BUCKET, S3Store, s3_store
from tests.support.waiting import until

BASE = [f"base{number:04}" for number in range(400)]
KEYS = [f"k{number:03}" for number in range(50)]


@pytest.fixture
async def scene() -> AsyncIterator[EmulatorScene]:
    async with Emulator(settings=Settings(page_rows=30, init_delay=0.01)) as emulator:
        yield EmulatorScene(emulator)


@pytest.fixture
def s3() -> Iterator[S3Store]:
    with s3_store() as store:
        yield store


def document(scene: EmulatorScene, s3: S3Store, folder: Path, end: datetime | None = None) -> Path:
    for name in ("keys", "spool"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "keys" / "accessKeyId").write_text("test-id")
    (folder / "keys" / "accessKeySecret").write_text("test-secret")
    credentials = {"directory": str(folder / "keys")}
    source = {
        "endpoint": scene.emulator.endpoint,
        "instance": "demo",
        "table": TABLE,
        "tunnelName": "t",
        "tunnelId": scene.tunnel_id,
        "credentials": credentials,
    }
    if end is not None:
        source["endTime"] = end.isoformat()
    files = {
        "url": f"s3://{BUCKET}/export",
        "endpoint": s3.url,
        "credentials": credentials,
        "compression": "gzip",
        "maxFileSeconds": 1,
        "spoolDirectory": str(folder / "spool"),
    }
    client = {"heartbeatIntervalSeconds": 5, "heartbeatTimeoutSeconds": 6, "checkpointIntervalSeconds": 0.5}
    path = folder / "worker.yaml"
    everything = {"source": source, "sink": {"files": files}, "client": client, "http": {"port": 0}}
    path.write_text(json.dumps({**everything, "delivery": {"retry": {"backoffSeconds": 0.1}}}))
    return path


async def freeze(worker: Process) -> None:
    """Stop a worker with every thread of it: one that went on could still remove a file."""

    def is_stopped() -> bool:
        try:
            threads = [path.read_text() for path in Path(f"/proc/{worker.pid}/task").glob("*/stat")]
        except OSError:
            return False  # one has just ended
        return all(text.rpartition(")")[2].split()[0] == "T" for text in threads)

    worker.send_signal(signal.SIGSTOP)
    await until(is_stopped, what="the worker stands still")


@pytest.mark.timeout(150)
@pytest.mark.lasts(20)
async def test_a_killed_worker_leaves_every_record_once_in_the_bucket(
    scene: EmulatorScene, s3: S3Store, tmp_path: Path
) -> None:
    await scene.create_table(partitions=2)
    await scene.put(BASE)
    await scene.create_tunnel(TunnelType.BaseAndStream)
    path = document(scene, s3, tmp_path)
    spool = tmp_path / "spool"

    worker = await start(path)
    await until(lambda: any(s3.names()), 40, "a first file")
    numbers = 0
    while not any("-" in name.rpartition("/")[2] for name in s3.names()):
        numbers += 1
        await scene.put(KEYS, [numbers])
        await asyncio.sleep(0.2)
    while True:
        numbers += 1
        await scene.put(KEYS, [numbers])
        await until(lambda: any(spool.iterdir()), 40, "a file that is being filled")
        await freeze(worker)
        if any(spool.iterdir()):
            break
        # what was seen had been published, and was removed before the worker stood still
        worker.send_signal(signal.SIGCONT)
    worker.kill()
    await worker.wait()
    s3.fail("PUT", times=6)
    s3.fail("GET", times=6)

    path = document(scene, s3, tmp_path, datetime.now(UTC))
    end_of_it = await ended(await start(path, "--exit-when-complete"), path, 100)

    assert end_of_it.code == 0, end_of_it.lines[-3:]
    assert list(spool.iterdir()) == []
    found = [record for records in s3.records().values() for record in records]
    existing = [record["key"]["pk"] for record in found if record["sequence"] is None]
    changes = Counter((record["key"]["pk"], record["columns"][0]["value"]) for record in found if record["sequence"])
    assert Counter(existing) == Counter(set(existing))
    assert set(existing) >= set(BASE)
    assert changes == Counter(row for row in scene.everything() if row[0] in KEYS)
