"""The service behind https, with as many instances, tables and keys as a fleet needs."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from ots_emulator import Emulator, Settings
from ots_emulator.server.ports import data_handler

#: Objects of one instance; each has its own tunnel and destination.
OBJECTS_OF_INSTANCE = 50
#: Tunnels of one table.
TUNNELS_OF_TABLE = 10
KEY_ID, KEY_SECRET = "test-id", "test-secret"


@dataclass(frozen=True)
class Place:
    """Where an object is, and what it reads."""

    number: int

    @property
    def name(self) -> str:
        return f"copy-{self.number:05}"

    @property
    def namespace(self) -> str:
        return f"team-{self.number // OBJECTS_OF_INSTANCE:03}"

    @property
    def instance(self) -> str:
        return f"shop-{self.number // OBJECTS_OF_INSTANCE:03}"

    @property
    def table(self) -> str:
        return f"flights_{self.number // TUNNELS_OF_TABLE:04}"

    @property
    def destination(self) -> str:
        return f"copy_{self.number:05}"


@dataclass(frozen=True)
class Certificate:
    """A certificate of 127.0.0.1 that is its own authority."""

    key: Path
    certificate: Path


def make_certificate(folder: Path) -> Certificate:
    """Make one that holds for two days."""
    made = Certificate(folder / "service.key", folder / "service.crt")
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    files = ("-keyout", str(made.key), "-out", str(made.certificate))
    subprocess.run(["openssl", "req", "-x509", *curve, *subject, *files], check=True, capture_output=True, timeout=30)
    return made


def trust(folder: Path, made: Certificate) -> Path:
    """A folder whose `sitecustomize` has the vendor's SDK trust this certificate: it asks certifi alone."""
    modules = folder / "modules"
    modules.mkdir()
    text = f"import certifi\n\ncertifi.where = lambda: {str(made.certificate)!r}\n"
    (modules / "sitecustomize.py").write_text(text)
    return modules


def emulator_for(places: list[Place]) -> Emulator:
    """An emulator with the instances of these objects."""
    keys = {KEY_ID: KEY_SECRET}
    return Emulator({place.instance: keys for place in places}, settings=Settings(table_quota=1_000_000))


@asynccontextmanager
async def https(emulator: Emulator, made: Certificate) -> AsyncIterator[str]:
    """The emulator's data port behind TLS; its URL."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.certificate, made.key)
    runner = web.ServerRunner(web.Server(data_handler(emulator.service.application), keepalive_timeout=3600.0))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
