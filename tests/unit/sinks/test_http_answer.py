"""What an answer says about its batch: every status means exactly one thing."""

from __future__ import annotations

import ssl
from unittest.mock import Mock

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from hypothesis import given
from hypothesis import strategies as st

from ots_tunnel.sinks.http_answer import (
    MAX_RETRY_AFTER,
    NOT_BEGUN,
    Answer,
    plain_words,
    retry_after,
    secrets_of,
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


@pytest.mark.parametrize(
    "told",
    [
        "bad token ab12/cd+34&== .",
        r"bad token ab12\/cd+34&== .",
        "bad token ab12%2fcd%2B34%26%3d%3D .",
        "bad token ab12/cd%2B34%26== .",
        "bad token AB12/CD+34&== .",
        "bad token ab12/cd+34&amp;== .",
        r"bad token ab12/cd\u002B34\u0026== .",
        "bad token ab12&#47;cd&#x2b;34&amp;== .",
        "bad token ab12%252Fcd%252B34%2526%253D%253D .",
        r"bad token ab12\u0025\u0032\u0046cd\u00252B34&#38;&#61;&#61; .",
    ],
)
def test_a_secret_is_left_out_however_an_answer_writes_it(told: str) -> None:
    assert plain_words(told.encode(), None, ["ab12/cd+34&=="]) == "bad token *** ."


@pytest.mark.parametrize("sent", ["?sig=a%2Fb0c%2Bdefghi%3D", "?sig=a/b0c%2Bdefghi%3D", "?sig=a%2fb0c%2bdefghi%3d"])
def test_the_parameters_of_an_address_are_left_out_as_they_are_sent(sent: str) -> None:
    secrets = secrets_of(f"https://hooks.example/in{sent}")

    assert plain_words(b"no page /in?sig=a/b0c%2Bdefghi%3D here", None, secrets) == "no page /in?*** here"


@pytest.mark.parametrize("query", ["v1&SECRET123", "v1&SECRET123=", "v1=&key=SECRET123=="])
def test_a_key_is_left_out_without_its_name_and_its_padding(query: str) -> None:
    words = plain_words(b"key SECRET123 is not allowed", None, secrets_of(f"https://h/in?{query}"))

    assert words == "key *** is not allowed"


@pytest.mark.parametrize("length", [4, 6, 9])
def test_the_beginning_of_a_secret_at_the_end_of_what_was_read_is_left_out(length: int) -> None:
    assert plain_words(b"bad token " + b"topsecrets"[:length], None, ["topsecrets"]) == "bad token ***"


@pytest.mark.parametrize("more", ["ö".encode()[:1], b"%C3", b"%", rb"\u00"])
def test_a_secret_is_left_out_that_is_cut_inside_of_a_character(more: bytes) -> None:
    assert plain_words(b"bad key geheimnis" + more, None, ["geheimnisöxyz"]) == "bad key ***"


@pytest.mark.parametrize(("charset", "mark"), [("utf-16", b"\xff\xfe"), ("utf-16le", b""), (None, b"\xff\xfe")])
def test_an_answer_is_read_in_its_charset(charset: str | None, mark: bytes) -> None:
    body = mark + "bad key geheimnisö12".encode("utf-16le")

    assert plain_words(body, charset, ["geheimnisö12"]) == "bad key ***"


@pytest.mark.parametrize("charset", ["no such", "hex", "undefined", "idna", "a\0b", "é", ""])
def test_a_wrong_charset_does_no_harm(charset: str) -> None:
    assert plain_words(b"no such hook", charset, []) == "no such hook"


def test_an_answer_that_cannot_be_searched_is_not_quoted() -> None:
    in_words_of_two_bytes = "geheimnis12".encode("utf-16le")

    assert plain_words(in_words_of_two_bytes, None, ["geheimnis12"]) == "(its answer is not quoted: it is no text)"
    assert plain_words(b"\\" * 300, None, []) == "(its answer is not quoted: it has too many escapes)"
