"""The choice between the compiled codec and the one in Python, made when the module is imported."""

from __future__ import annotations

import runpy
import sys

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.protocol.plainbuffer import compiled

NATIVE = "ots_tunnel.protocol.plainbuffer._native"


def chosen(monkeypatch: pytest.MonkeyPatch, choice: str, name: str = "CODEC") -> object:
    monkeypatch.setenv(compiled.VARIABLE, choice)
    return runpy.run_path(compiled.__file__)[name]


@pytest.fixture
def not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the package was installed without a compiler."""
    monkeypatch.setitem(sys.modules, NATIVE, None)
    monkeypatch.delattr("ots_tunnel.protocol.plainbuffer._native", raising=False)


def test_python_is_used_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, "python") == "Python"
    assert chosen(monkeypatch, "python", "NOT_COMPILED") is None


@pytest.mark.usefixtures("not_built")
def test_python_is_used_where_there_was_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, "auto") == "Python"
    assert chosen(monkeypatch, "auto", "NOT_COMPILED") == "the package was built without a compiler"


def test_python_is_used_where_bytes_have_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")

    assert chosen(monkeypatch, "auto") == "Python"
    assert chosen(monkeypatch, "auto", "NOT_COMPILED") == "the compiled codec is for little-endian machines"


@pytest.mark.usefixtures("not_built")
def test_the_compiled_codec_on_request_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="built without a compiler"):
        chosen(monkeypatch, "compiled")


def test_another_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="found 'fast', allowed are auto, compiled, python"):
        chosen(monkeypatch, "fast")


@pytest.mark.usefixtures("compiled_codec")
def test_the_compiled_codec_is_used_where_it_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, "auto") == chosen(monkeypatch, "compiled") == "compiled"
    assert chosen(monkeypatch, "auto", "NOT_COMPILED") is None
