"""What an answer of a web service says about the batch that it answers; pure.

    2xx, and the whole batch was sent   it is stored
    425, 429                            it was refused before anything was done: sent again after a pause
    408, any 5xx, 2xx before its end,   it is in doubt: a proxy says so, whichever words it uses, also where the service
    no answer                           has taken the batch and its answer was late or lost
    any other                           it is refused

No header proves the contrary: Varnish adds a Retry-After to the 503 that it makes itself, other proxies have no name.
"""

from __future__ import annotations

import codecs
import os
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import aiohttp

from ots_tunnel.protocol.http.statuses import NOT_BEGUN, REQUEST_TIMEOUT

#: Longest pause that a Retry-After can ask for, seconds: a mistaken date must not stop the worker for days.
MAX_RETRY_AFTER = 600.0
#: Statuses that a single event can cause.
ABOUT_ONE_EVENT = frozenset((400, 413, 422))
#: Bytes of a refusal's body that are read, seconds for which it is waited for, and characters that a message has room
#: for.
MAX_BODY, BODY_SECONDS, MAX_WORDS = 4096, 1.0, 200
#: In the place of an answer that no message shows.
UNQUOTED = "(its answer is not quoted: {})"
#: What only the owner of the service or of the document can end, and how.
_WAYS_OUT = {
    401: "correct the keys in sink.http.url, or the secret of sink.http.hmacSecretFile that signs the events",
    403: "let the service accept the events; keys are in sink.http.url, or sign them by sink.http.hmacSecretFile",
    404: "correct sink.http.url, or create what it leads to",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one batch.

    Args:
        status: 0 without any answer.
        retry_after: seconds for which the service asks to wait.
        is_early: it came before the last byte of the batch was sent.
        cause: why there is none, where that is known.
        words: what the service says with a refusal, see `plain_words`.
    """

    status: int = 0
    retry_after: float = 0.0
    is_early: bool = False
    cause: str = ""
    words: str = ""

    def __str__(self) -> str:
        if not self.status:
            return f"no answer ({self.cause})" if self.cause else "no answer"
        return f"HTTP {self.status} before the end of the batch" if self.is_early else f"HTTP {self.status}"

    @property
    def is_success(self) -> bool:
        """Whether the whole batch is stored."""
        return 200 <= self.status < 300 and not self.is_early

    @property
    def is_in_doubt(self) -> bool:
        """Whether the batch may be stored, now or later."""
        status = self.status
        return not status or status == REQUEST_TIMEOUT or status >= 500 or (200 <= status < 300 and self.is_early)

    @property
    def is_refusal(self) -> bool:
        """Whether the batch is refused for good."""
        return not (self.is_success or self.is_in_doubt or self.status in NOT_BEGUN)

    @property
    def is_about_one_event(self) -> bool:
        """Whether a single event of the batch may be why it is refused."""
        return self.status in ABOUT_ONE_EVENT

    def refusal(self, url: str) -> str:
        """The sentence of a refusal.

        Args:
            url: without parameters, which may hold keys of the service.
        """
        parts = (f"sink.http.url {url!r} refuses", self.words, _WAYS_OUT.get(self.status, ""))
        return ": ".join(part for part in parts if part)


def plain_words(body: bytes, charset: str | None) -> str:
    """The beginning of a body on one line, without what no log shows.

    Args:
        charset: that the answer names, whether there is one of that name or not.
    """
    text = _decoded(body, charset)
    if "\0" in text:
        return UNQUOTED.format("it is no text")
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"


def _decoded(body: bytes, charset: str | None) -> str:
    """Text without a last character that is cut off."""
    has_mark = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for name in (charset, "utf-16" if has_mark else None):
        with suppress(LookupError, ValueError):
            if name is not None:
                b"a".decode(name, "replace")  # refuses codecs that are no charsets, such as hex
                return codecs.getincrementaldecoder(name)("replace").decode(body)
    return codecs.getincrementaldecoder("utf-8")("replace").decode(body)


def retry_after(text: str, now: float) -> float:
    """Seconds of a Retry-After, which is a number or a date; 0 without one or for any other text.

    Args:
        now: Unix seconds.
    """
    text = text.strip()
    if text.isdecimal():
        return min(float(text), MAX_RETRY_AFTER)
    try:
        return min(max(0.0, parsedate_to_datetime(text).timestamp() - now), MAX_RETRY_AFTER)
    except (ValueError, TypeError, OverflowError):
        return 0.0


def why_silent(error: Exception, seconds: float) -> str:
    """Why a request got no answer, the same for every failure of one kind.

    Of the address it has at most host and port: parameters may hold keys of the service.

    Args:
        seconds: for which it was waited.
    """
    if isinstance(error, TimeoutError):
        return f"none within {seconds:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _why_unconnected(error)
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def _why_unconnected(error: aiohttp.ClientConnectorError) -> str:
    """Without the IP address that was tried last: those of a service take turns, and each would be another text."""
    if isinstance(error, aiohttp.ClientConnectorDNSError | aiohttp.ClientSSLError):
        return str(error)
    number = error.os_error.errno
    why = "its addresses fail for different reasons" if number is None else os.strerror(number)
    return f"Cannot connect to host {error.host}:{error.port} [{why}]"
