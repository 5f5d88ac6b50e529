"""The order of keys in which two scans are merged."""

from __future__ import annotations

from ots_tunnel.model import PrimaryKey
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.plainbuffer.spans import scan_row
from ots_tunnel.verify.scan import sort_key


def test_keys_are_ordered_as_the_service_orders_them() -> None:
    keys: list[PrimaryKey] = [(("a", -1),), (("a", 0),), (("a", 300),)]
    texts: list[PrimaryKey] = [(("a", ""),), (("a", "a"),), (("a", "\uffff"),), (("a", "\U0001f600"),)]
    for sequence in (keys, texts):
        spans = [scan_row(encode_row(key)).key for key in sequence]
        assert sorted(reversed(spans), key=sort_key) == spans
