"""`ots-tunnel replicate` between two tables of an emulator: the job's file, and runs with short times."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ots_tunnel.client.table import TableClient
from ots_tunnel.job_file import load_job
from ots_tunnel.replicate.job import SETTINGS, ReplicationJob
from ots_tunnel.replicate.preparation import StartOptions
from ots_tunnel.tables import TableAdmin
from ots_tunnel.verify.compare import Comparison, compare_tables
from tests.support.verify_scene import COPY, INSTANCE, KEYS, SCHEMA, SOURCE, VerifyScene, row

FAST = replace(SETTINGS, interval=0.3, timeout=3, checkpoint_interval=0.2, early_spacing=0.05, reconnect=(0.01, 0.05))


def create_source(scene: VerifyScene, rows: int) -> None:
    admin = TableAdmin(scene.emulator.endpoint, INSTANCE, KEYS)
    admin.create(replace(SCHEMA, deviation_seconds=9_223_372_036_854))
    admin.close()
    scene.put(SOURCE, [row(number) for number in range(rows)])


def job_file(scene: VerifyScene, end: datetime, **changes: Any) -> Path:
    common = {
        "endpoint": scene.emulator.endpoint,
        "instanceName": INSTANCE,
        "accessId": "test-id",
        "accessKey": "test-secret",
    }
    document = {
        "ots-reader": {**common, "tableName": SOURCE, "tunnelName": "copy", "endTime": end.isoformat()},
        "ots-writer": {**common, "tableName": COPY, "batchWriteCount": 100},
    }
    for path, value in changes.items():
        section, _, name = path.partition("_")
        document[f"ots-{section}"][name] = value
    file = scene.folder / "job.json"
    file.write_text(json.dumps(document))
    return file


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def job(
    scene: VerifyScene,
    end: datetime,
    said: list[str] | None = None,
    start: StartOptions | None = None,
    **changes: Any,
) -> ReplicationJob:
    said = [] if said is None else said
    file = load_job(job_file(scene, end, **changes))
    start = start or StartOptions()
    return ReplicationJob(file, end, (KEYS, KEYS), start=start, say=said.append, stream=io.StringIO(), settings=FAST)


async def compared(scene: VerifyScene) -> Comparison:
    client = TableClient(scene.emulator.endpoint, INSTANCE, KEYS)
    try:
        return await compare_tables(client, SOURCE, client, COPY)
    finally:
        await client.close()
