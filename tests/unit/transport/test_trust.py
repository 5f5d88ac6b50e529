"""Transports share what they trust, as long as one of them uses it and the variables of OpenSSL stay."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from ots_tunnel.transport.trust import VARIABLES, system_trust


@pytest.fixture(autouse=True)
def nothing_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates that no other test of this process uses."""
    (tmp_path / "none.pem").touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


def test_all_transports_have_one_context() -> None:
    assert system_trust() is system_trust()
    assert system_trust().get_ca_certs() == []


def test_a_context_that_nothing_holds_is_read_anew() -> None:
    before = weakref.ref(system_trust())
    gc.collect()

    assert before() is None


@pytest.mark.parametrize("variable", VARIABLES)
def test_other_certificates_are_another_context(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    before = system_trust()

    monkeypatch.setenv(variable, "/nowhere")

    assert system_trust() is not before
