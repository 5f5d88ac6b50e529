"""The bucket's name in the host, as OSS needs it, or in the path, as most other stores do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ots_tunnel.config import CredentialsConfig, FileStoreConfig
from ots_tunnel.sinks.files.bucket import BucketStore
from tests.support.guards import OpenGuard


class Proxy:
    """A proxy for every host, so that no name is resolved; records the address of each request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        await reader.readexactly(int(headers.get("content-length", 0)))
        method, target, _ = head[0].split(" ")
        self.asked.append((method, headers["host"], urlsplit(target).path))
        writer.write(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
        await writer.drain()
        writer.close()


@pytest.mark.parametrize(
    ("in_host", "host", "path"),
    [
        (True, "shop.oss-cn-hangzhou.example", "/copy/orders/t/c1/a.jsonl"),
        (False, "oss-cn-hangzhou.example", "/shop/copy/orders/t/c1/a.jsonl"),
    ],
)
async def test_the_bucket_is_in_the_host_or_in_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_host: bool, host: str, path: str
) -> None:
    proxy = Proxy()
    (tmp_path / "accessKeyId").write_text("id")
    (tmp_path / "accessKeySecret").write_text("hush")
    server = await asyncio.start_server(proxy.answer, "127.0.0.1", 0)
    monkeypatch.setenv("http_proxy", "http://{}:{}".format(*server.sockets[0].getsockname()))
    monkeypatch.delenv("no_proxy", raising=False)
    config = FileStoreConfig(
        url="s3://shop/copy/orders",
        endpoint="http://oss-cn-hangzhou.example",
        bucket_in_host=in_host,
        credentials=CredentialsConfig(directory=tmp_path),
    )
    async with server, asyncio.timeout(20):
        bucket = BucketStore(config, path="sink.files", deadline=10, spool_directory=tmp_path)
        spooled = await bucket.spool("t/c1")
        spooled.write_bytes(b"x")
        await bucket.publish(spooled, "t/c1", "a.jsonl", OpenGuard().check)

    assert ("PUT", host, path) in proxy.asked
