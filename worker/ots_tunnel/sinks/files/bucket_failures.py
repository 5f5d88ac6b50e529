"""What an object store's failure means for records: refused for good, or worth another try."""

from __future__ import annotations

import re

from ots_tunnel.errors import SinkError, SinkRejected

#: How the library tells that a request was denied where its exception does not: what is written part by part, and
#: lists, fail with one exception for everything.
_DENIED = re.compile(
    r"status code: 40[13]\b|lacked (valid authentication|the necessary privileges)"
    r"|code: (AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch)\b"
)


def failure_of(url: str, error: Exception) -> SinkError:
    """The error to raise for one of the library.

    Args:
        url: of the bucket, for the message.

    Returns:
        A SinkRejected for what no repetition mends, a SinkError for everything else.
    """
    text, line = str(error), f"{url}: {_first_line(error)}"
    if "NoSuchBucket" in text:
        return SinkRejected("NoSuchBucket", f"{url}: the bucket does not exist")
    if _DENIED.search(text):
        return SinkRejected("Denied", line)
    return SinkError(line)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:500]
