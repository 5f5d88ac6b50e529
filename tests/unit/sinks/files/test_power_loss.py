"""What a sink has confirmed survives a power loss: every new entry of a folder is flushed before the confirmation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ots_emulator.durable.database import Storage
from ots_tunnel.model import ChannelId, TunnelId
from ots_tunnel.sinks.files.folder import FolderStore
from ots_tunnel.sinks.files.names import folder_of
from ots_tunnel.verify.state_file import StateFile

NAMES = st.text(alphabet="ab.", min_size=1, max_size=6)


class Disk:
    """A disk that keeps an entry of a folder only once the folder is flushed; watches the calls of this process.

    Args:
        known: folders that exist. Their entries above `base` are on the disk already.
    """

    def __init__(self, patch: pytest.MonkeyPatch, base: Path) -> None:
        self.base = base
        #: Entries that a power loss would take.
        self.loose: set[Path] = {path for path in base.rglob("*")}
        #: Files whose contents a power loss would take.
        self.unwritten: set[Path] = set()
        #: Entries that a power loss would bring back.
        self.undead: set[Path] = set()
        self._calls = {name: getattr(os, name) for name in ("mkdir", "fsync", "replace", "rename", "unlink")}
        patch.setattr(os, "mkdir", self._mkdir)
        patch.setattr(os, "unlink", self._unlink)
        patch.setattr(os, "fsync", self._fsync)
        patch.setattr(os, "replace", self._replace)
        patch.setattr(os, "rename", self._replace)

    def _mkdir(self, path: os.PathLike[str] | str, *arguments: int, **named: object) -> None:
        self._calls["mkdir"](path, *arguments, **named)
        self.loose.add(Path(path).absolute())

    def _fsync(self, handle: int) -> None:
        self._calls["fsync"](handle)
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        self.unwritten.discard(path)
        self.loose -= {entry for entry in self.loose if entry.parent == path}
        self.undead -= {entry for entry in self.undead if entry.parent == path}

    def _unlink(self, path: os.PathLike[str] | str) -> None:
        self._calls["unlink"](path)
        self.undead.add(Path(path).absolute())

    def _replace(self, source: os.PathLike[str] | str, target: os.PathLike[str] | str) -> None:
        spooled, path = Path(source).absolute(), Path(target).absolute()
        assert spooled not in self.unwritten, "a file appears before its contents are on the disk"
        self._calls["replace"](source, target)
        self.loose.add(path)

    def would_lose(self, path: Path) -> set[Path]:
        """Entries on the way to a path that a power loss would take."""
        return {entry for entry in (path, *path.parents) if entry in self.loose}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(tunnel=NAMES, channels=st.lists(NAMES, min_size=1, max_size=3), deep=st.integers(0, 3), killed=st.integers(0, 4))
async def test_a_published_file_is_found_after_a_power_loss(
    tmp_path_factory: pytest.TempPathFactory, tunnel: str, channels: list[str], deep: int, killed: int
) -> None:
    """Also below folders that a killed process has created and not flushed."""
    base = tmp_path_factory.mktemp("disk")
    root = base.joinpath(*("deep" for _ in range(deep)), "out")
    folders = [folder_of(TunnelId(tunnel), ChannelId(channel)) for channel in channels]
    for part in (root, *(root / folder for folder in folders))[:killed]:
        part.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, base)
        store = FolderStore(root)
        await store.check()
        for number, folder in enumerate((*folders, *folders)):
            spooled = await store.spool(folder)
            spooled.write_bytes(b"rows")
            disk.unwritten.add(spooled.absolute())
            await store.publish(spooled, folder, f"{number}.jsonl", lambda: None)

            assert disk.would_lose(root / folder / f"{number}.jsonl") == set()
    assert [path for path in base.rglob("*.jsonl") if not path.is_relative_to(root)] == []


async def test_a_file_that_a_replay_replaces_does_not_come_back(tmp_path: Path) -> None:
    """Dead letters are removed also where the replay has none: no file that appears flushes the folder."""
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "old.jsonl").write_bytes(b"rows")
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, tmp_path)
        await FolderStore(tmp_path).delete("t", ["old.jsonl", "gone.jsonl"])
        await FolderStore(tmp_path).delete("never", ["gone.jsonl"])

        assert disk.undead == set()
    assert list((tmp_path / "t").iterdir()) == []


def test_the_state_of_a_comparison_is_found_after_a_power_loss(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, tmp_path)
        StateFile(tmp_path / "state.json", lambda: "{}").write()

        assert disk.would_lose(tmp_path / "state.json") == set()


def test_a_data_directory_is_found_after_a_power_loss(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, tmp_path)
        Storage(tmp_path / "deep" / "data", fsync=True).close()

        assert disk.would_lose(tmp_path / "deep" / "data") == set()


def test_a_folder_that_may_not_be_read_hinders_nobody(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    opened = os.open

    def refusing(path: object, *arguments: int) -> int:
        if path == closed:
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refusing)
        Storage(closed / "data").close()
    assert (closed / "data").is_dir()
