"""Keys as text for errors and logs."""

from __future__ import annotations

from ots_tunnel.model import Action, KeyValue
from ots_tunnel.protocol.plainbuffer.codec import encode_row
from ots_tunnel.protocol.record import Record
from ots_tunnel.sinks.key_text import KEY_CHARACTERS, key_text


def key(*values: KeyValue) -> bytes:
    return Record(Action.PUT, encode_row(tuple((f"k{number}", value) for number, value in enumerate(values)))).key


def test_every_kind_of_value_is_shown() -> None:
    assert key_text(key("a", 12, b"\x00")) == "k0='a', k1=12, k2=b'\\x00'"


def test_long_values_are_shortened_and_later_columns_stay() -> None:
    text = key_text(key("y" * 100, 12))

    assert text.endswith("..., k1=12")
    assert len(text) < 60


def test_a_long_key_is_cut() -> None:
    assert len(key_text(key(*("y" * 100 for _ in range(4))))) == KEY_CHARACTERS
