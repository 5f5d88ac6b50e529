"""Where credentials of a query come from, and mistakes that are named without a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials
from ots_tunnel.spark.reader.logins import credentials_of

SECRET = "hush-hush"
HERE = __name__
NAMES = ("OTS_ACCESS_KEY_ID", "OTS_ACCESS_KEY_SECRET", "OTS_SECURITY_TOKEN", "OTS_ACCESS_KEY_SECURITY_TOKEN")


class Vault:
    """A class of the user."""

    def __call__(self) -> Credentials:
        return Credentials("id", SECRET, "token")


class Wrong:
    """Returns a secret that is no Credentials."""

    def __call__(self) -> Credentials:
        return SECRET  # type: ignore[return-value]  # the mistake


class Silent:
    """Cannot be called."""


class Needing:
    """Needs an argument."""

    def __init__(self, vault: str) -> None:
        raise AssertionError(SECRET, vault)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> str:
    """This module under a name that can be imported."""
    import sys

    monkeypatch.setitem(sys.modules, "user_logins", sys.modules[HERE])
    return "user_logins"


def test_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "accessKeyId").write_text("id")
    (tmp_path / "accessKeySecret").write_text(SECRET)

    assert credentials_of(str(tmp_path), "")() == Credentials("id", SECRET)


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(NAMES, ("id", SECRET, "token"), strict=False):
        monkeypatch.setenv(name, value)

    assert credentials_of("", "environment")() == Credentials("id", SECRET, "token")


def test_a_class_of_the_user(importable: str) -> None:
    assert credentials_of("", f"{importable}.Vault")() == Credentials("id", SECRET, "token")


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        ("environment", "option 'credentialsProvider': OTS_ACCESS_KEY_ID and OTS_ACCESS_KEY_SECRET are not set"),
        ("vault", "option 'credentialsProvider': found 'vault', which cannot be imported"),
        ("no.such.Vault", "found 'no.such.Vault', which cannot be imported"),
        ("user_logins.Absent", "found 'user_logins.Absent', which cannot be imported"),
        ("user_logins.HERE", "found 'user_logins.HERE', which is no class"),
        ("..vault.Vault", "found '..vault.Vault', which cannot be imported"),
        ("user_logins.Needing", "found 'user_logins.Needing', which cannot be created without arguments"),
        ("user_logins.Silent", "objects of 'user_logins.Silent' cannot be called"),
        ("user_logins.Wrong", "user_logins.Wrong returned str, allowed is Credentials"),
        ("", "option 'credentialsDirectory': /nowhere/accessKeyId: missing or empty"),
    ],
)
def test_mistakes_are_named(importable: str, provider: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        credentials_of("/nowhere", provider)()
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
