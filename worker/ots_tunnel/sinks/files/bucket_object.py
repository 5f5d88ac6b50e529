"""Reading from a bucket: a published object as a file that can be sought in."""

from __future__ import annotations

import io
from typing import Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from ots_tunnel.sinks.files.bucket_failures import failure_of


class BucketObject(io.RawIOBase):
    """A published object for blocking reads; every read is a request of its own.

    Args:
        store: the bucket.
        path: the object's name below the store's prefix.
        size: of the object, bytes.
        url: of the bucket, for messages.
    """

    def __init__(self, store: S3Store, path: str, size: int, url: str) -> None:
        self._store = store
        self._url = url
        self._path = path
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins, bytes."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to where the next read begins; no request is made."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as there are bytes.

        Raises:
            SinkRejected: the store refuses it for good.
            SinkError: the store does not answer.
        """
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._size - self._at)
        if length <= 0:
            return 0
        try:
            view[:length] = obstore.get_range(self._store, self._path, start=self._at, length=length)
        except BaseError as error:
            raise failure_of(self._url, error) from error
        self._at += length
        return length
