"""One local Spark session per run, and an emulator with a table of several splits."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from ots_emulator import Emulator
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Action, Credentials, KeyColumn, KeyType, Marker, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_rows, encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.spark.versions import bounds_streams
from ots_tunnel.tables import TableAdmin, TableSchema
from tests.support.kube.config_maps import cluster_access, config_map_server
from tests.support.lacking import lack

from .collected import close_with_file

__all__ = ["cluster_access", "config_map_server"]

#: The client of Spark Connect, which `make setup` does not install, and Iceberg, which has no jar for the lock's minor:
#: `matrix` runs both.
collect_ignore = [
    *([] if find_spec("grpc") else ["test_connect.py"]),
    *(["lake/test_iceberg.py"] if bounds_streams(pyspark.__version__) else []),
]

CREDENTIALS = static_credentials(Credentials("test-id", "test-secret"))
ROWS = 1_500
KEYS = (KeyColumn("carrier", KeyType.STRING), KeyColumn("flight", KeyType.INTEGER))


@pytest.fixture(scope="session")
def event_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the session's event log."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(event_logs: Path) -> Iterator[Any]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        lack("java", "no Java: Spark needs version 17 on the path or in JAVA_HOME")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        # two attempts per task: local[2] would allow one
        SparkSession.builder.master("local[2,2]")
        .appName("ots-tunnel tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", event_logs.as_uri())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    with pytest.MonkeyPatch.context() as patch:
        close_with_file(patch)
        yield session
    session.stop()


@dataclass(frozen=True)
class Instance:
    """An instance of the emulator with the filled table `flights` and the empty table `flights_copy`."""

    endpoint: str
    client: SyncTableClient
    secrets: Path

    def rows(self, table: str) -> list[DecodedRow]:
        low: PrimaryKey = tuple((key.name, Marker.INF_MIN) for key in KEYS)
        high: PrimaryKey = tuple((key.name, Marker.INF_MAX) for key in KEYS)
        found: list[DecodedRow] = []
        start: PrimaryKey | None = low
        while start is not None:
            page = self.client.get_range(table, start, high, max_versions=3)
            found += decode_rows(page.rows)
            start = page.next_start
        return found


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def instance(emulator: Emulator, tmp_path: Path) -> Iterator[Instance]:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "accessKeyId").write_text("test-id")
    (secrets / "accessKeySecret").write_text("test-secret")
    admin = TableAdmin(emulator.endpoint, "demo", CREDENTIALS)
    for table in ("flights", "flights_copy"):
        admin.create(TableSchema(table, KEYS, max_versions=3, deviation_seconds=10 * 365 * 86_400))
    admin.close()
    client = SyncTableClient(emulator.endpoint, "demo", CREDENTIALS)
    changes = [RowChange(Action.PUT, row(number)) for number in range(ROWS)]
    for start in range(0, ROWS, 200):
        outcomes = client.batch_write("flights", changes[start : start + 200])
        assert {outcome.code for outcome in outcomes} == {None}
    yield Instance(emulator.endpoint, client, secrets)
    client.close()


def row(number: int) -> bytes:
    """A row with one to three versions of a string and an integer, or only its key."""
    key: PrimaryKey = (("carrier", f"c{number % 13:02}"), ("flight", number))
    if number % 500 == 0:
        return encode_row(key, ())
    entropy = random.Random(number)
    versions = range(1_700_000_000_000, 1_700_000_000_000 + number % 3 + 1)
    cells = [Column("remark", entropy.randbytes(500).hex(), version) for version in versions]
    return encode_row(key, [*cells, Column("delay", number - 100, 1_700_000_000_000)])
