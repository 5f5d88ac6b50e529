"""The tree's own rules."""

from __future__ import annotations

import operator
import sysconfig
import tomllib
from pathlib import Path

from ots_tunnel.version import __version__

ROOT = Path(__file__).parents[2]


def test_top_folders_are_no_packages() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not (ROOT / "worker" / "__init__.py").exists()


def test_operator_module_is_the_standard_library() -> None:
    source = Path(operator.__file__ or "")

    assert source.is_relative_to(sysconfig.get_path("stdlib"))
    assert operator.itemgetter(1)("ab") == "b"


def test_the_package_and_its_distribution_have_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == __version__
