"""What an answer says about its batch: every status means exactly one thing."""

from __future__ import annotations

import ssl
from unittest.mock import Mock

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.protocol.http.statuses import NOT_BEGUN
from ots_tunnel.sinks.http_answer import (
    MAX_RETRY_AFTER,
    Answer,
    plain_words,
    retry_after,
    why_silent,
)

#: The parameters of an address may hold keys of the service.
ADDRESS = "https://hooks.example/in?token=hush"
#: What aiohttp has of the connection: host, port, and whether it is encrypted.
TO = ConnectionKey("hooks.example", 443, True, True, None, None, None)


@given(st.integers(0, 999), st.booleans())
def test_every_answer_means_one_thing(status: int, is_early: bool) -> None:
    answer = Answer(status, is_early=is_early)
    meanings = [answer.is_success, answer.is_in_doubt, answer.is_refusal, status in NOT_BEGUN]

    assert meanings.count(True) == 1


@given(st.integers(500, 999), st.floats(0, 100))
def test_no_error_of_a_server_proves_that_nothing_was_done(status: int, pause: float) -> None:
    assert Answer(status, pause).is_in_doubt


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(), "no answer"),
        (Answer(cause="none within 2 s"), "no answer (none within 2 s)"),
        (Answer(503), "HTTP 503"),
        (Answer(200, is_early=True), "HTTP 200 before the end of the batch"),
    ],
)
def test_an_answer_is_told_in_words(answer: Answer, text: str) -> None:
    assert str(answer) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("99999999", MAX_RETRY_AFTER),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0),
        ("soon", 0),
        ("Thu, 01 Jan 99999999999999999999 00:00:00 GMT", 0),
        ("", 0),
    ],
)
def test_a_retry_after_is_a_number_or_a_date(text: str, seconds: float) -> None:
    assert retry_after(text, now=60) == seconds


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "none within 2.5 s"),
        (aiohttp.ConnectionTimeoutError(f"Connection timeout to host {ADDRESS}"), "none within 2.5 s"),
        (aiohttp.ServerDisconnectedError(), "ServerDisconnectedError"),
        (aiohttp.ClientOSError(104, "Connection reset by peer"), "Connection reset by peer"),
        (BrokenPipeError(32, "Broken pipe"), "Broken pipe"),
        (OSError("odd"), "OSError"),
        (
            aiohttp.ClientResponseError(Mock(real_url=ADDRESS), (), status=400, message="Bad status line"),
            "ClientResponseError",
        ),
        *(
            (
                aiohttp.ClientConnectorError(TO, OSError(111, f"Connect call failed ('{address}', 443)")),
                "Cannot connect to host hooks.example:443 [Connection refused]",
            )
            for address in ("192.0.2.1", "192.0.2.2")
        ),
        (
            aiohttp.ClientConnectorError(TO, OSError("Multiple exceptions")),
            "Cannot connect to host hooks.example:443 [its addresses fail for different reasons]",
        ),
        (
            aiohttp.ClientConnectorDNSError(TO, OSError(-2, "Name or service not known")),
            "Cannot connect to host hooks.example:443 ssl:default [Name or service not known]",
        ),
        (
            aiohttp.ClientConnectorCertificateError(TO, ssl.SSLCertVerificationError("certificate has expired")),
            "Cannot connect to host hooks.example:443 ssl:True "
            "[SSLCertVerificationError: ('certificate has expired',)]",
        ),
    ],
)
def test_why_there_is_no_answer_is_told_without_the_address(error: Exception, words: str) -> None:
    assert why_silent(error, 2.5) == words


@pytest.mark.parametrize(("charset", "mark"), [("utf-16", b"\xff\xfe"), ("utf-16le", b""), (None, b"\xff\xfe")])
def test_an_answer_is_read_in_its_charset(charset: str | None, mark: bytes) -> None:
    body = mark + "kein Schlüssel".encode("utf-16le")

    assert plain_words(body, charset) == "kein Schlüssel"


@pytest.mark.parametrize("charset", ["no such", "hex", "undefined", "idna", "a\0b", "é", ""])
def test_a_wrong_charset_does_no_harm(charset: str) -> None:
    assert plain_words(b"no such hook", charset) == "no such hook"


def test_an_answer_that_is_no_text_is_not_quoted() -> None:
    assert plain_words("no such hook".encode("utf-16le"), None) == "(its answer is not quoted: it is no text)"
