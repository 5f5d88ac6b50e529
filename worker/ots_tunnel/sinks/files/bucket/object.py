"""Objects of a bucket: one as a seekable file, and what a failed request means for records."""

from __future__ import annotations

import io
import re
from typing import Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from ots_tunnel.errors import SinkError, SinkRejected

#: Texts of denied requests. Uploads in parts and listings fail with one class of exception for every cause, so the text
#: has to tell.
_DENIED = re.compile(
    r"status code: 40[13]\b|lacked (valid authentication|the necessary privileges)"
    r"|code: (AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch)\b"
)


class BucketObject(io.RawIOBase):
    """A published object as a file for blocking reads; every read is one ranged request.

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
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
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
            SinkRejected: the store refuses the request for good.
            SinkError: the store does not answer.
        """
        view = memoryview(buffer).cast("B")
        length = min(len(view), self._size - self._at)
        if length <= 0:
            return 0
        try:
            view[:length] = obstore.get_range(self._store, self._path, start=self._at, length=length)
        except BaseError as error:
            raise bucket_error(self._url, error) from error
        self._at += length
        return length


def bucket_error(url: str, error: Exception) -> SinkError:
    """The error to raise for one of obstore.

    Args:
        url: of the bucket, for the message.

    Returns:
        SinkRejected where a repetition does not repair it, SinkError otherwise.
    """
    text, line = str(error), f"{url}: {_first_line(error)}"
    if "NoSuchBucket" in text:
        return SinkRejected("NoSuchBucket", f"{url}: the bucket does not exist")
    if _DENIED.search(text):
        return SinkRejected("Denied", line)
    return SinkError(line)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:500]
