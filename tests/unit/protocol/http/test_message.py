"""Messages of HTTP as records."""

from __future__ import annotations

from ots_tunnel.protocol.http.message import SummedBody


def test_a_body_is_shown_by_its_size_alone() -> None:
    assert repr(SummedBody(b"rows of a customer", b"sum")) == "SummedBody(18 bytes)"
