"""Invalid dates and signatures are refused by name."""

from __future__ import annotations

import pytest

from ots_tunnel.errors import CodecError
from ots_tunnel.protocol.http.signing import parse_date, sign_v4


@pytest.mark.parametrize(
    ("text", "message"), [("yesterday", "is not of the form"), ("2026-02-30T00:00:00.000Z", "does not exist")]
)
def test_an_invalid_date_is_refused(text: str, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        parse_date(text)


def test_signature_v4_names_the_header_that_is_missing() -> None:
    with pytest.raises(CodecError, match="missing header x-ots-signregion"):
        sign_v4("/ListTable", {"x-ots-signdate": "20260101"}, "secret")
