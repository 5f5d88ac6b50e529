"""Dates, digests and signatures of requests and responses (docs/protocol.md 1.3-1.7, docs/data-plane.md 1.3-1.6)."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.md5 import md5_of

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z", re.ASCII)
_PREFIX = "x-ots-"
_SIGNATURES = frozenset(("x-ots-signature", "x-ots-signaturev4"))


def format_date(epoch_s: float) -> str:
    """``x-ots-date`` of a time in Unix seconds: UTC with exactly three digits of milliseconds."""
    seconds, milliseconds = divmod(int(epoch_s * 1000), 1000)
    return f"{_whole_seconds(seconds)}.{milliseconds:03d}Z"


# Cached: every request of one second has the same text.
@lru_cache(maxsize=4)
def _whole_seconds(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def parse_date(text: str) -> float:
    """Unix seconds of an ``x-ots-date``, without its fraction.

    The fraction is ignored: the vendor's Go client writes month, day and hour there (docs/protocol.md 1.3).

    Raises:
        CodecError: the text is not such a date.
    """
    match = _DATE.fullmatch(text.strip())
    if match is None:
        raise CodecError(f"date {text[:40]!r} is not of the form 2006-01-02T15:04:05.000Z")
    try:
        return _epoch(match.groups())
    except ValueError as error:
        raise CodecError(f"date {text[:40]!r} does not exist") from error


# Cached: every answer of one second has the same date.
@lru_cache(maxsize=16)
def _epoch(parts: tuple[str, ...]) -> float:
    year, month, day, hour, minute, second = map(int, parts)
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()


def content_md5(body: bytes) -> str:
    """``x-ots-contentmd5``: standard base64 of the MD5 of the bytes as sent."""
    return digest_text(md5_of((body,))[0])


def digest_text(md5: bytes) -> str:
    """``x-ots-contentmd5`` of an MD5 that is known."""
    return base64.b64encode(md5).decode()


def string_to_sign(path: str, headers: Mapping[str, str]) -> str:
    """Canonical form of a request: path, method, an empty query, every ``x-ots-`` header but the signatures.

    Args:
        path: absolute path such as ``/tunnel/heartbeat``, without the endpoint.
        headers: names in any case; others are ignored.
    """
    return f"{path}\nPOST\n\n" + "".join(f"{line}\n" for line in _signed_lines(headers))


def _signed_lines(headers: Mapping[str, str]) -> list[str]:
    signed = {name.lower(): value for name, value in headers.items()}
    names = sorted(name for name in signed if name.startswith(_PREFIX) and name not in _SIGNATURES)
    return [f"{name}:{signed[name].strip()}" for name in names]


def sign_v2_in_order(path: str, headers: Mapping[str, str], secret: str) -> str:
    """`sign_v2` for headers of which all are signed, in lower case and sorted."""
    lines = [f"{name}:{value.strip()}\n" for name, value in headers.items()]
    return _hmac_base64(secret, f"{path}\nPOST\n\n{''.join(lines)}", "sha1")


def sign_v2(path: str, headers: Mapping[str, str], secret: str) -> str:
    """``x-ots-signature``: base64 HMAC-SHA1 of the string to sign."""
    return _hmac_base64(secret, string_to_sign(path, headers), "sha1")


def sign_v4(path: str, headers: Mapping[str, str], secret: str) -> str:
    """``x-ots-signaturev4``; date and region are taken from ``x-ots-signdate`` and ``x-ots-signregion``.

    Raises:
        CodecError: one of the two headers is missing.
    """
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    try:
        key = v4_signing_key(secret, lowered["x-ots-signdate"], lowered["x-ots-signregion"])
    except KeyError as error:
        raise CodecError(f"missing header {error.args[0]}, which signature v4 needs") from error
    return _hmac_base64(key, string_to_sign(path, headers) + "ots", "sha256")


def v4_signing_key(secret: str, date: str, region: str) -> str:
    """Key of signature v4: the base64 text itself serves as the key (docs/protocol.md 1.7).

    Args:
        secret: AccessKey secret.
        date: ``yyyyMMdd``, UTC.
        region: such as ``cn-hangzhou``.
    """
    key = ("aliyun_v4" + secret).encode()
    for part in (date, region, "ots", "aliyun_v4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return base64.b64encode(key).decode()


def sign_response(api_path: str, headers: Mapping[str, str], signing_key: str) -> str:
    """Signature of a response: what follows the colon in ``Authorization: OTS <id>:<signature>``.

    Args:
        api_path: path that was called, such as ``/ListTable``.
        headers: response headers; every ``x-ots-`` one is covered.
        signing_key: the secret, or the v4 signing key when the request was signed with v4.
    """
    return _hmac_base64(signing_key, "\n".join([*_signed_lines(headers), api_path]), "sha1")


def _hmac_base64(key: str, text: str, algorithm: str) -> str:
    return base64.b64encode(hmac.digest(key.encode(), text.encode(), algorithm)).decode()
