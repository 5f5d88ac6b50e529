"""What an image leaves out of its packages is there, and is removed; its build shows that nothing misses it."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.support.image_programs import image_program

unused: Any = image_program("unused")
PACKAGES = Path(sysconfig.get_path("purelib"))


def placed(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)


def test_what_a_rule_names_is_removed_and_the_rest_stays(tmp_path: Path) -> None:
    placed(tmp_path, "arrow/lib.so", "arrow/lib.so.1", "arrow/include/a.h", "arrow/include/b/c.h", "other/lib.so")
    rule = unused.Unused("arrow", ("arrow/*.so", "arrow/include", "arrow/include/b/*.h"), "reason")

    lines = unused.remove_unused(tmp_path, (rule,))

    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["arrow/lib.so.1", "other/lib.so"]
    assert lines == ["    0.0 MiB  arrow: reason"]


def test_a_rule_of_a_package_that_is_not_installed_has_nothing_to_do(tmp_path: Path) -> None:
    assert unused.remove_unused(tmp_path, (unused.Unused("arrow", ("arrow/*.so",), "reason"),)) == []


def test_a_rule_that_finds_nothing_in_its_package_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    placed(tmp_path, "numpy/__init__.py", "numpy-2.dist-info/METADATA", "uvloop/loop.so")

    assert unused.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == "unused.py: uvloop: nothing is named uvloop/**/*.pyx, uvloop/**/*.pxd any more\n"


def test_every_rule_finds_something_in_the_packages_of_the_lock() -> None:
    installed = [rule for rule in unused.UNUSED if (PACKAGES / rule.package).is_dir()]

    assert installed
    assert [rule for rule in installed if not list(rule.paths(PACKAGES))] == []
