"""Sinks behind certificates of a private authority: a store of one's own, a web service inside of a company."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from ots_tunnel.config import DeliveryConfig, FileStoreConfig, HttpSinkConfig
from ots_tunnel.errors import ConfigError, SinkError
from ots_tunnel.model import ChannelId, ChannelType
from ots_tunnel.sinks import Batch
from ots_tunnel.sinks.files.bucket import BucketStore
from ots_tunnel.sinks.http_sink import HttpSink
from tests.support.guards import OpenGuard
from tests.support.network.certificates import of_private_authority
from tests.support.records import numbered_record
from tests.support.sinks.s3_store import BUCKET, s3_store
from tests.support.waiting import until


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("accessKeyId", "accessKeySecret"):
        (folder / name).write_text(name)
    return folder


def bucket(url: str, keys: Path, authorities: Path | None) -> BucketStore:
    section = {"url": f"s3://{BUCKET}/export", "endpoint": url, "credentials": {"directory": str(keys)}}
    config = FileStoreConfig.model_validate(section | ({"caFile": str(authorities)} if authorities else {}))
    return BucketStore(config, path="sink.files", deadline=30.0)


async def test_a_bucket_is_reached_once_its_authority_is_in_the_file(tmp_path: Path, keys: Path) -> None:
    authority, server = of_private_authority(tmp_path / "own")
    other, _ = of_private_authority(tmp_path / "other")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(other.read_bytes())
    with s3_store(server, authority) as s3:
        with pytest.raises(SinkError):
            await bucket(s3.url, keys, None).check()
        store = bucket(s3.url, keys, trusted)
        with pytest.raises(SinkError):
            await store.check()

        # of several certificates in the file each counts, and the file may change while the worker runs
        trusted.write_bytes(other.read_bytes() + authority.read_bytes())
        await store.check()

        trusted.write_text("half of a Secret")
        await store.check()


@asynccontextmanager
async def service(certificate: Path) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A web service that takes everything: its address, and the bodies."""
    taken: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        taken.append(await request.read())
        return web.Response(status=204)

    application = web.Application()
    application.router.add_post("/in", take)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "localhost", 0, ssl_context=tls).start()
    try:
        yield f"https://localhost:{runner.addresses[0][1]}/in", taken
    finally:
        await runner.cleanup()


async def test_a_web_service_is_reached_once_its_authority_is_in_the_file(tmp_path: Path) -> None:
    authority, certificate = of_private_authority(tmp_path / "own")
    other, _ = of_private_authority(tmp_path / "other")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(other.read_bytes())
    quick = DeliveryConfig.model_validate({"retry": {"backoffSeconds": 0.01, "backoffMaxSeconds": 0.02}})
    async with service(certificate) as (url, taken):
        config = HttpSinkConfig.model_validate({"url": url, "caFile": str(trusted)})
        sink = HttpSink(config, "ots://shop/orders", "t-1", delivery=quick, lanes=1, deadline=30)
        await sink.open()
        try:
            writing = asyncio.create_task(
                sink.write(Batch(ChannelId("c"), ChannelType.STREAM, (numbered_record("a", 1),)), OpenGuard())
            )
            await until(lambda: sink.retries > 0, 20, "a try that fails")
            assert taken == []
            trusted.write_bytes(authority.read_bytes())

            async with asyncio.timeout(20):
                await writing
        finally:
            await sink.close()

    assert len(taken) == 1


@pytest.mark.parametrize(
    ("text", "words"), [(None, "No such file"), ("no PEM", "allowed are certificates in PEM form")]
)
def test_a_file_without_certificates_fails_the_start(tmp_path: Path, keys: Path, text: str | None, words: str) -> None:
    file = tmp_path / "ca.crt"
    if text is not None:
        file.write_text(text)

    with pytest.raises(ConfigError, match=f"sink.files.caFile: .*{words}"):
        bucket("https://localhost:1", keys, file)
    config = HttpSinkConfig.model_validate({"url": "https://localhost", "caFile": str(file)})
    with pytest.raises(ConfigError, match=f"sink.http.caFile: .*{words}"):
        HttpSink(config, "ots://shop/orders", "t-1", delivery=DeliveryConfig(), lanes=1, deadline=1.0)
