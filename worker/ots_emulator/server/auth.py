"""Authentication: headers, date, key, signature and digest of a request; signature of the answer.

Source: docs/data-plane.md 1.2 to 1.6, docs/protocol.md 1.2 to 1.7.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ots_emulator.instance import Instance
from ots_emulator.ledger import ELIXIR, ERRORS, EVERY, documented, guessed, live
from ots_emulator.pages import Body
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.signing import (
    content_md5,
    format_date,
    parse_date,
    sign_response,
    sign_v2,
    sign_v4,
    v4_signing_key,
)

_REQUIRED: Final = (
    "x-ots-date",
    "x-ots-apiversion",
    "x-ots-accesskeyid",
    "x-ots-contentmd5",
    "x-ots-instancename",
)
#: Instance names (docs/data-plane.md 2.2); served instances may have other names.
_INSTANCE_NAME: Final = re.compile(r"[A-Za-z0-9-]{3,16}")
_API_VERSIONS: Final = ("2015-12-31", "2018-04-01")


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller; `signing_key` signs the answers."""

    instance: Instance
    access_key_id: str
    signing_key: str = field(repr=False)


def authenticate(
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    instances: Mapping[str, Instance],
    *,
    now: float,
    skew: float | None,
) -> Caller:
    """Check a request and return its caller.

    Args:
        path: as the client signed it.
        headers: lower-case names.
        body: the bytes as they were sent.
        instances: every instance of the server.
        now: the service's time, seconds.
        skew: largest difference to the client's date; None accepts every date.

    Raises:
        Refusal: in the order of docs/data-plane.md 1.5.
    """
    for name in _REQUIRED:
        if not headers.get(name):
            raise parameter_invalid(f"Missing header: '{name}'.")
    version = headers["x-ots-apiversion"]
    if version not in _API_VERSIONS:
        raise parameter_invalid(f"Unsupported API version: {version}.")
    date = headers["x-ots-date"]
    try:
        sent = parse_date(date)
    except CodecError as error:
        raise parameter_invalid(f"Invalid date format: {date}.") from error
    if skew is not None and abs(now - sent) > skew:
        raise Refusal("OTSAuthFailed", f"Mismatch between system time and x-ots-date: {date}.")
    key_id = headers["x-ots-accesskeyid"]
    instance = _instance_of(headers["x-ots-instancename"], key_id, instances)
    signing_key = _check_signature(path, headers, instance.keys[key_id])
    if not _digest_matches(path, headers["x-ots-contentmd5"].strip(), body):
        text = "Mismatch between MD5 value of request body and x-ots-contentmd5 in header."
        raise Refusal("OTSAuthFailed", text)
    return Caller(instance, key_id, signing_key)


def _instance_of(name: str, key_id: str, instances: Mapping[str, Instance]) -> Instance:
    """Return an instance that a key may use."""
    if not any(key_id in instance.keys for instance in instances.values()):
        raise Refusal("OTSAuthFailed", "The AccessKeyID does not exist.")
    instance = instances.get(name)
    if instance is None and not _INSTANCE_NAME.fullmatch(name):
        raise parameter_invalid(f"Invalid instance name: '{name}'.")
    if instance is None:
        raise Refusal("OTSAuthFailed", "The instance is not found.")
    if key_id not in instance.keys:
        raise Refusal("OTSAuthFailed", "The user has no privilege to access the instance.")
    return instance


def _digest_matches(path: str, sent: str, body: bytes) -> bool:
    """Whether a digest is that of the body; of table calls it may be of the hexadecimal digits.

    The public Elixir client sends both: the bytes with tunnel calls, the digits with all others.
    """
    if sent == content_md5(body):
        return True
    if path.startswith("/tunnel/"):
        return False
    digits = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return sent in [base64.b64encode(text.encode()).decode() for text in (digits.upper(), digits)]


def _check_signature(path: str, headers: Mapping[str, str], secret: str) -> str:
    """Return the key that signs the answer."""
    if "x-ots-signaturev4" in headers:
        for name in ("x-ots-signdate", "x-ots-signregion"):
            if not headers.get(name):
                raise parameter_invalid(f"Missing header: '{name}'.")
        found, expected = headers["x-ots-signaturev4"], sign_v4(path, headers, secret)
    elif "x-ots-signature" in headers:
        found, expected = headers["x-ots-signature"], sign_v2(path, headers, secret)
    else:
        raise parameter_invalid("Missing header: 'x-ots-signature'.")
    if not hmac.compare_digest(found.strip().encode(), expected.encode()):
        raise Refusal("OTSAuthFailed", "Signature mismatch.")
    return _signing_key(headers, secret)


def claimed_caller(headers: Mapping[str, str], instances: Mapping[str, Instance]) -> Caller | None:
    """Return the caller that a refused request claims, None for an unknown instance or key.

    Clients check the signature of every answer but OTSAuthFailed; without one they do not see the error's code
    (docs/data-plane.md 1.7).

    Args:
        headers: lower-case names.
        instances: every instance of the server.
    """
    key_id = headers.get("x-ots-accesskeyid", "")
    instance = instances.get(headers.get("x-ots-instancename", ""))
    if instance is None or key_id not in instance.keys:
        return None
    return Caller(instance, key_id, _signing_key(headers, instance.keys[key_id]))


def _signing_key(headers: Mapping[str, str], secret: str) -> str:
    """Return the key that signs the answer, which depends on the signature version of the request."""
    if "x-ots-signaturev4" not in headers:
        return secret
    date, region = (headers.get(name, "").strip() for name in ("x-ots-signdate", "x-ots-signregion"))
    return v4_signing_key(secret, date, region)


def inflate(headers: Mapping[str, str], body: bytes, limit: int) -> bytes:
    """Decompress a request body, if it is compressed (docs/protocol.md 1.8).

    Raises:
        Refusal: unknown compression, broken data, or more than `limit` bytes.
    """
    kind = headers.get("x-ots-request-compress-type")
    if not kind:
        return body
    if kind != "deflate":
        raise parameter_invalid(f"Unsupported compress type: {kind}.")
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise parameter_invalid("Request body is no deflate stream.") from error
    if len(plain) > limit:
        raise body_too_large()
    if not inflater.eof:
        raise parameter_invalid("Request body is no deflate stream.")
    return plain


def body_too_large() -> Refusal:
    """Build the refusal of an over-long body."""
    return Refusal("OTSRequestBodyTooLarge", "The size of POST data is too large.")


def answer_headers(
    path: str, body: Body, request_id: str, now: float, caller: Caller | None, *, compressed: bool = False
) -> dict[str, str]:
    """Return the headers of an answer, signed if the caller is known (docs/data-plane.md 1.6).

    Args:
        path: as the client signed it.
        body: the body before compression; its MD5 is sent, as the vendor's Java client checks.
        request_id: a fresh id.
        now: the service's time, seconds.
        caller: None if the request was refused before its caller was known.
        compressed: whether the body is sent compressed.
    """
    headers = {
        "x-ots-contentmd5": body.digest,
        "x-ots-contenttype": "protocol buffer",
        "x-ots-date": format_date(now),
        "x-ots-requestid": request_id,
    }
    if compressed:
        headers["x-ots-response-compress-type"] = "deflate"
        headers["x-ots-response-compress-size"] = str(len(body.content))
    key_id, key = (caller.access_key_id, caller.signing_key) if caller is not None else ("", "")
    # In the service's spelling: some clients look the header up case-sensitively.
    headers["Authorization"] = f"OTS {key_id}:{sign_response(path, headers, key)}"
    return headers


LEDGER: Final = (
    documented(EVERY, "signatures V2 and V4, digest, date within 15 minutes, compression", "the SDKs' code"),
    documented(EVERY, "codes, statuses and texts of these refusals", ERRORS),
    guessed(EVERY, "the order of these checks", "no source has it"),
    live(
        EVERY,
        "the digest of a call on tables may be of hexadecimal digits",
        ELIXIR("lib/ex_aliyun_ots/protocol.ex add_x_ots_to_headers"),
    ),
    documented(
        EVERY,
        "five headers on every answer; `Authorization` is spelt so",
        "the code of the Java SDK 4.3.1, which ignores other spellings",
    ),
)
