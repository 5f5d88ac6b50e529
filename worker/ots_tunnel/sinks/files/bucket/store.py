"""Files in a bucket of an S3-compatible store, OSS included.

A file is filled on disk and uploaded in parts. Only the last call of the upload makes it appear, and the guard is asked
right before that call. The parts of an abandoned upload stay invisible until the bucket's lifecycle rules remove them.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from ots_tunnel.config import FileStoreConfig
from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import ConfigError, SinkError, SinkRejected
from ots_tunnel.sinks.files.bucket.object import BucketObject, bucket_error
from ots_tunnel.sinks.files.store import THREADS, FileSpoiled, disk_error, flush_file
from ots_tunnel.threads import DaemonThreads
from ots_tunnel.transport.authorities import Authorities
from ots_tunnel.transport.foreign_sockets import limited_sockets
from ots_tunnel.transport.sending_limit import KERNEL_SHARE

if TYPE_CHECKING:
    from obstore.store import ClientConfig

#: Bytes of one part: the minimum of S3. An object has at most 10,000 parts, so a file at most 52 GB.
PART_BYTES = 5_242_880

#: Parts of one file, and files of one worker, that are uploaded at the same time. Each part is in memory: 40 MB in all.
PARTS_AT_ONCE = 2
FILES_AT_ONCE = 4

#: Bytes of one ranged request when a file is read.
READ_BYTES = 262_144

#: Seconds after which the files of the credentials are read again.
CREDENTIALS_SECONDS = 60

_T = TypeVar("_T")


class BucketStore:
    """A prefix in a bucket; see `open_store`."""

    def __init__(
        self, config: FileStoreConfig, *, path: str, deadline: float, spool_directory: Path | None = None
    ) -> None:
        if config.credentials is None:
            raise ValueError(f"{path}.credentials: checked by the document")
        self._credentials = FileCredentials(config.credentials.directory).checked(f"{path}.credentials.directory")
        if spool_directory is not None and not spool_directory.is_dir():
            raise ConfigError(f"{path}.spoolDirectory: found {spool_directory}, allowed is a folder that exists")
        self._uploads = asyncio.Semaphore(FILES_AT_ONCE)
        self._threads = DaemonThreads("spool", THREADS)
        self._url = config.url
        self._deadline = deadline
        #: Seconds after which a call is given up; the library closes its connection a little later, in its own thread.
        self._patience = deadline * KERNEL_SHARE
        self._spool_directory = spool_directory
        parts = urlsplit(config.url)
        endpoint = config.endpoint and config.endpoint.rstrip("/")
        if endpoint and config.bucket_in_host:
            scheme, _, host = endpoint.partition("://")
            endpoint = f"{scheme}://{parts.netloc}.{host}"
        place = urlsplit(endpoint or "https://")
        self._port = place.port or (80 if place.scheme == "http" else 443)
        self._authorities = Authorities(config.ca_file, f"{path}.caFile") if config.ca_file is not None else None
        self._make = partial(
            S3Store,
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            endpoint=endpoint,
            region=config.region or "us-east-1",
            virtual_hosted_style_request=config.bucket_in_host,
            credential_provider=self._provide,
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=deadline)},
        )
        self._trusted: bytes | None = None
        self._made: S3Store | None = None

    def __repr__(self) -> str:
        return f"BucketStore({self._url})"

    async def check(self) -> None:
        """See `FileStore.check`: the bucket exists and may be listed."""
        await self.names("")

    async def spool(self, folder: str) -> Path:
        """See `FileStore.spool`: on disk, because an upload that failed is repeated from its beginning."""
        return self._spool_folder / f"{self._spool_prefix(folder)}{uuid.uuid4().hex}"

    async def publish(self, spooled: Path, folder: str, name: str, before: Callable[[], None]) -> None:
        """See `FileStore.publish`."""
        # A disk that could not write a page drops it, and a read may bring back what was there before.
        await self._threads.run(flush_file, spooled)
        async with self._uploads:
            await self._translated(self._upload(spooled, f"{folder}/{name}", before))
        with suppress(OSError):  # what is uploaded is published: `tidy` removes what is left here
            await self._threads.run(spooled.unlink, True)

    async def names(self, folder: str, after: str = "") -> list[str]:
        """See `FileStore.names`."""
        if after:
            return await self._translated(self._names_after(folder, after))
        answer = await self._translated(obstore.list_with_delimiter_async(self._store, folder or None))
        return [str(entry["path"]).rpartition("/")[2] for entry in answer["objects"]]

    async def read(self, folder: str, name: str) -> IO[bytes]:
        """See `FileStore.read`."""
        path = f"{folder}/{name}"
        size = (await self._translated(obstore.head_async(self._store, path)))["size"]
        return io.BufferedReader(BucketObject(self._store, path, size, self._url), READ_BYTES)

    async def delete(self, folder: str, names: Sequence[str], before: Callable[[], None] = lambda: None) -> None:
        """See `FileStore.delete`."""
        for name in names:
            try:
                await self._translated(self._delete(f"{folder}/{name}", before))
            except SinkRejected:
                raise
            except SinkError:
                # It may still be carried out, and must not meet a later file of this name.
                await asyncio.sleep(self._deadline)
                raise

    async def tidy(self, folder: str) -> None:
        """See `FileStore.tidy`: spooled files are on disk, never in the bucket."""
        await self._threads.run(self._tidy, self._spool_prefix(folder))

    @property
    def _store(self) -> S3Store:
        """The library's store; another one once the file of authorities has changed."""
        trusted = self._authorities.text if self._authorities is not None else None
        if self._made is None or trusted != self._trusted:
            options: ClientConfig = {"allow_http": True, "timeout": timedelta(seconds=self._deadline)}
            if trusted is not None:
                options["root_certificate"] = trusted
            self._made, self._trusted = self._make(client_options=options), trusted
        return self._made

    @property
    def _spool_folder(self) -> Path:
        return Path(self._spool_directory or tempfile.gettempdir())

    def _spool_prefix(self, folder: str) -> str:
        # Several workers on one machine may fill files of the same table, in one temporary folder.
        place = hashlib.sha256(f"{self._url}/{folder}".encode()).hexdigest()
        return f"ots-tunnel-{place[:16]}-"

    async def _names_after(self, folder: str, after: str) -> list[str]:
        found = []
        async for entries in obstore.list(self._store, folder, offset=f"{folder}/{after}"):
            for entry in entries:
                parent, _, name = str(entry["path"]).rpartition("/")
                # a store may not know the offset, and lists folders in folders, too
                if parent == folder and name > after:
                    found.append(name)
        return found

    def _tidy(self, prefix: str) -> None:
        try:
            for path in self._spool_folder.glob(f"{prefix}*"):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(error) from error

    async def _upload(self, spooled: Path, path: str, before: Callable[[], None]) -> None:
        # A writer that is dropped before `close` publishes nothing.
        writer = obstore.open_writer_async(self._store, path, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        sent = 0
        while part := await self._threads.run(_read_part, spooled, sent):
            await writer.write(part)
            sent += len(part)
        async with limited_sockets((self._port,), self._deadline):
            before()
            await _within(self._patience, writer.close())

    async def _delete(self, path: str, before: Callable[[], None]) -> None:
        # Bounded as the upload is: a delete that arrives later could remove the file of the channel's next owner.
        async with limited_sockets((self._port,), self._deadline):
            before()
            await _within(self._patience, obstore.delete_async(self._store, path))

    async def _translated(self, call: Awaitable[_T]) -> _T:
        try:
            return await call
        except (BaseError, OSError) as error:
            raise bucket_error(self._url, error) from error

    def _provide(self) -> dict[str, Any]:
        credentials = self._credentials()
        return {
            "access_key_id": credentials.access_key_id,
            "secret_access_key": credentials.access_key_secret,
            "token": credentials.security_token,
            "expires_at": datetime.now(UTC) + timedelta(seconds=CREDENTIALS_SECONDS),
        }


async def _within(seconds: float, call: Awaitable[_T]) -> _T:
    """The result of a call that may take so long; `asyncio.wait_for` of Python 3.11 may swallow a cancellation."""
    async with asyncio.timeout(seconds):
        return await call


def _read_part(spooled: Path, start: int) -> bytes:
    """The next part of a file; opened for each, so that a cancelled upload leaves no file open.

    Raises:
        FileSpoiled: the file cannot be read.
    """
    try:
        with spooled.open("rb") as file:
            file.seek(start)
            return file.read(PART_BYTES)
    except OSError as error:
        raise FileSpoiled(f"{spooled}: {error.strerror}") from error
