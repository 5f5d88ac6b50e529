"""Two tables of an emulator in a thread, and `ots-tunnel verify` on them, in this process or in a separate one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from ots_emulator import Emulator, Settings
from ots_tunnel.cli import cli
from ots_tunnel.client.sync_table import SyncTableClient
from ots_tunnel.client.table_calls import RowChange
from ots_tunnel.credentials import static_credentials
from ots_tunnel.model import Action, Credentials, KeyColumn, KeyType, PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.tables import TableAdmin, TableSchema
from tests.support.programs.processes import bare_environment, module

INSTANCE, SOURCE, COPY = "demo", "orders", "orders_copy"
KEYS = static_credentials(Credentials("test-id", "test-secret"))
SCHEMA = TableSchema(SOURCE, (KeyColumn("pk", KeyType.STRING), KeyColumn("n", KeyType.INTEGER)), max_versions=3)

#: Milliseconds; a version that any table accepts.
BASE = 1_700_000_000_000

Row = tuple[PrimaryKey, tuple[Column, ...]]


def key(number: int) -> PrimaryKey:
    return (("pk", f"k{number:05}"), ("n", number))


def row(number: int, *columns: Column) -> Row:
    return key(number), columns or (Column("x", number, BASE),)


@dataclass
class VerifyScene:
    """Emulator, credentials folder and both tables."""

    emulator: Emulator
    folder: Path

    def create(self, copy: TableSchema | None = None, source: TableSchema = SCHEMA) -> None:
        """Create both tables, with equal schemas by default."""
        admin = TableAdmin(self.emulator.endpoint, INSTANCE, KEYS)
        for schema in (source, copy or replace(source, name=COPY)):
            admin.create(replace(schema, deviation_seconds=9_223_372_036_854))
        admin.close()

    def put(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows."""
        changes = [RowChange(Action.PUT, encode_row(*row)) for row in rows]
        client = SyncTableClient(self.emulator.endpoint, INSTANCE, KEYS)
        try:
            for start in range(0, len(changes), 50):
                outcomes = client.batch_write(table, changes[start : start + 50])
                assert all(outcome.code is None for outcome in outcomes), outcomes
        finally:
            client.close()

    def fill(self, rows: Iterable[Row]) -> None:
        """Write the same rows into both tables."""
        rows = list(rows)
        self.put(SOURCE, rows)
        self.put(COPY, rows)

    def arguments(self, *more: str) -> list[str]:
        """Options of the command that name both tables and the state file."""
        places = ["--endpoint", self.emulator.endpoint, "--instance", INSTANCE, "--credentials", str(self.folder)]
        tables = ["--table", SOURCE, "--to-table", COPY, "--state", str(self.state)]
        return ["verify", *places, *tables, *more]

    @property
    def state(self) -> Path:
        """Path of the state file."""
        return self.folder / "state.json"

    def verify(self, *more: str) -> Result:
        """Run the command in this process."""
        return CliRunner().invoke(cli, self.arguments(*more))

    def report(self, *more: str) -> dict[str, Any]:
        """Run the command for its JSON object."""
        result = self.verify("-o", "json", *more)
        assert result.exit_code in (0, 1), (result.output, result.exception)
        document: dict[str, Any] = json.loads(result.stdout)
        assert document["equal"] == (result.exit_code == 0)
        return document

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Run the command as a process."""
        return subprocess.Popen(
            module("ots_tunnel", *self.arguments(*more)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=bare_environment(),
        )


@contextmanager
def verify_scene(folder: Path, settings: Settings | None = None) -> Iterator[VerifyScene]:
    """A scene without tables."""
    (folder / "accessKeyId").write_text("test-id")
    (folder / "accessKeySecret").write_text("test-secret")
    with Emulator(settings=settings or Settings()) as emulator:
        yield VerifyScene(emulator, folder)
