"""The archive of `kubectl ott` runs without anything that is installed, and krew finds in it what the manifest says."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_plugin", ROOT / "operator" / "build_plugin.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make plugin` writes, the archive unpacked beside it."""
    folder = tmp_path_factory.mktemp("plugin")
    with tarfile.open(builder.build(folder, "https://releases.example/ots-tunnel/")) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("arguments", [("--version",), ("why", "--help"), ("top", "--help")])
def test_the_program_needs_nothing_that_is_installed(folder: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(folder / "kubectl-ott"), *arguments],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert f"kubectl ott, version {VERSION}" in done.stdout or "Usage: kubectl ott" in done.stdout


def test_the_program_is_executable_and_has_its_licences(folder: Path) -> None:
    assert (folder / "kubectl-ott").stat().st_mode & 0o111 == 0o111
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "Redistribution" in (folder / "LICENSE-click").read_text()


def test_the_manifest_names_the_archive_and_its_digest(folder: Path) -> None:
    manifest = yaml.safe_load((folder / "ott.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    archive = folder / Path(platform["uri"]).name

    assert manifest["metadata"]["name"] == "ott"
    assert manifest["spec"]["version"] == f"v{VERSION}"
    assert platform["uri"] == f"https://releases.example/ots-tunnel/kubectl-ott-{VERSION}.tar.gz"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert {item["from"] for item in platform["files"]} == {"kubectl-ott", "LICENSE", "LICENSE-click"}
    assert platform["bin"] == "kubectl-ott"


def test_the_same_sources_give_the_same_bytes(builder: ModuleType, folder: Path, tmp_path: Path) -> None:
    again = builder.build(tmp_path, "https://releases.example/ots-tunnel/")

    assert again.read_bytes() == (folder / again.name).read_bytes()


def test_an_old_python_gets_a_sentence(builder: ModuleType) -> None:
    # whatever an old Python cannot parse would be a traceback
    tree = ast.parse(builder.MAIN, feature_version=(3, 7))

    assert isinstance(tree.body[1], ast.If)
    assert "needs Python 3.11" in builder.MAIN
