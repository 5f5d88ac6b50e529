from __future__ import annotations

import os
from pathlib import Path

import pytest

from ots_tunnel.credentials import FileCredentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials


class Secret:
    """A folder as a kubelet mounts it: names link into `..data`, which is swapped atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = 0

    def swap(self, **files: str) -> None:
        self.version += 1
        data = self.folder / f"..{self.version}"
        data.mkdir()
        for name, text in files.items():
            (data / name).write_text(text)
            os.utime(data / name, ns=(self.version, self.version))
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(Path("..data") / name)
        (self.folder / "..new").symlink_to(data.name)
        (self.folder / "..new").rename(self.folder / "..data")


@pytest.fixture
def secret(tmp_path: Path) -> Secret:
    made = Secret(tmp_path)
    made.swap(accessKeyId="id1", accessKeySecret="secret1\n", securityToken="token1")
    return made


def test_a_swapped_secret_is_read_again(secret: Secret) -> None:
    credentials = FileCredentials(secret.folder, interval=0.0)
    assert credentials() == Credentials("id1", "secret1", "token1")

    secret.swap(accessKeyId="id2", accessKeySecret="secret2")

    assert credentials() == Credentials("id2", "secret2", None)


def test_the_files_are_looked_at_once_an_interval(secret: Secret) -> None:
    now = [100.0]
    credentials = FileCredentials(secret.folder, interval=5.0, clock=lambda: now[0])
    first = credentials()
    secret.swap(accessKeyId="id2", accessKeySecret="secret2")

    assert credentials() is first
    now[0] += 5.0
    assert credentials() == Credentials("id2", "secret2", None)


def test_a_swap_between_two_files_never_mixes_two_pairs(secret: Secret) -> None:
    class Swapped(FileCredentials):
        def _read(self, name: str) -> str:
            if name == "accessKeySecret" and secret.version == 1:
                secret.swap(accessKeyId="id2", accessKeySecret="secret2")
            return super()._read(name)

    assert Swapped(secret.folder)() == Credentials("id2", "secret2", None)


def test_a_file_that_is_gone_for_a_moment_leaves_the_former_pair(
    secret: Secret, caplog: pytest.LogCaptureFixture
) -> None:
    credentials = FileCredentials(secret.folder, interval=0.0)
    first = credentials()

    secret.swap(accessKeyId="id2", accessKeySecret="")
    assert credentials() is credentials() is first
    secret.swap(accessKeyId="id2", accessKeySecret="secret2")
    assert credentials() == Credentials("id2", "secret2", None)

    assert [record.getMessage() for record in caplog.records] == [
        "credentials cannot be read, the previous ones stay in use"
    ]
    assert vars(caplog.records[0])["error"] == f"{secret.folder}/accessKeySecret: missing or empty"


@pytest.mark.parametrize("name", ["accessKeyId", "accessKeySecret", "securityToken"])
def test_a_value_that_no_request_can_carry_leaves_the_former_pair(
    secret: Secret, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """Every call failed until the Secret was corrected, as the header of a request was refused."""
    credentials = FileCredentials(secret.folder, interval=0.0)
    first = credentials()

    secret.swap(**{"accessKeyId": "id2", "accessKeySecret": "secret2", name: "to\nken"})

    assert credentials() == first
    assert f"{name}: has a line break or another control character within" in caplog.records[-1].__dict__["error"]
    assert "ken" not in caplog.records[-1].__dict__["error"].removeprefix(str(secret.folder)).replace(name, "")
    with pytest.raises(ConfigError, match=name):
        FileCredentials(secret.folder).checked("source.credentials.directory")


def test_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "accessKeyId").write_text("id")

    with pytest.raises(ConfigError, match=r"accessKeySecret: missing or empty"):
        FileCredentials(tmp_path)()


def test_a_file_in_place_of_the_folder_is_a_wrong_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match="Not a directory"):
        FileCredentials(tmp_path / "file")()
