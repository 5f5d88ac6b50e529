"""The build of the codec finds a compiler, fetches one where it is demanded, or says what is missing."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.lacking import lack

ROOT = Path(__file__).parents[3]


class Hook:
    """What hatchling gives a hook: the folder of the project, and a place for warnings."""

    def __init__(self, root: str = str(ROOT)) -> None:
        self.root = root
        self.app = self
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hook's module; hatchling is installed only where a wheel is built."""
    interface = ModuleType("interface")
    vars(interface)["BuildHookInterface"] = Hook
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    spec = importlib.util.spec_from_file_location("build_codec", ROOT / "worker" / "build_codec.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any compiler; the folder of its programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("OTS_TUNNEL_BUILD", raising=False)
    return programs


@pytest.fixture
def headers() -> None:
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        lack("compiler", "this Python has no headers")


def initialize(build: ModuleType) -> list[str]:
    """The warnings of a build of the wheel."""
    hook: Any = build.CodecBuildHook()
    data: dict[str, Any] = {"force_include": {}}
    try:
        hook.initialize("standard", data)
    finally:
        hook.finalize("standard", data, "")
    assert data == {"force_include": {}}
    return list(hook.warnings)


@pytest.mark.usefixtures("bare", "headers")
def test_a_demanded_codec_without_a_compiler_says_what_to_install(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTS_TUNNEL_BUILD", "compiled")

    with pytest.raises(build.MissingTool, match="needs a C compiler, and there is none") as caught:
        initialize(build)
    for way in ("apt-get install gcc libc6-dev", build.COMPILER_PACKAGE, "OTS_TUNNEL_BUILD=python"):
        assert way in str(caught.value)


@pytest.mark.usefixtures("bare", "headers")
def test_an_install_without_a_compiler_warns_and_goes_on(build: ModuleType) -> None:
    (warning,) = initialize(build)

    assert warning.startswith("the codec is not compiled, the Python one is used: compiling the codec needs a C comp")


@pytest.mark.usefixtures("bare")
def test_python_is_built_without_a_word(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTS_TUNNEL_BUILD", "python")

    assert initialize(build) == []


@pytest.mark.usefixtures("bare", "headers")
@pytest.mark.parametrize(
    ("choice", "fetched"), [("compiled", True), ("fetch", True), ("auto", False), ("python", False)]
)
def test_a_compiler_is_fetched_only_where_the_codec_is_demanded(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, choice: str, fetched: bool
) -> None:
    monkeypatch.setenv("OTS_TUNNEL_BUILD", choice)

    assert build.CodecBuildHook().dependencies() == ([build.COMPILER_PACKAGE] if fetched else [])


def test_no_compiler_is_fetched_where_one_is_installed(
    build: ModuleType, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTS_TUNNEL_BUILD", "compiled")
    (bare / "clang").write_text("#!/bin/sh\n")
    (bare / "clang").chmod(0o755)

    assert build.installed_compiler() == "clang"
    assert build.CodecBuildHook().dependencies() == []


@pytest.mark.usefixtures("bare", "headers")
def test_the_compiler_that_is_asked_for_is_never_replaced(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where it does not exist, setuptools names it."""
    monkeypatch.setenv("CC", "ccache mine")
    monkeypatch.setenv("OTS_TUNNEL_BUILD", "compiled")

    assert build.CodecBuildHook().dependencies() == []
    assert build.compiler_settings(tmp_path) == {"CC": "ccache mine"}


@pytest.mark.usefixtures("bare", "headers")
def test_the_fetched_compiler_compiles_links_and_leaves_nothing(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    settings = build.compiler_settings(tmp_path)

    assert settings["CC"] == f"{sys.executable} -m ziglang cc"
    assert settings["LDSHARED"] == f"{settings['CC']} -shared"
    assert all(Path(settings[f"ZIG_{each}_CACHE_DIR"]).is_relative_to(tmp_path) for each in ("GLOBAL", "LOCAL"))


def test_an_interpreter_without_headers_is_named(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    before = dict(os.environ)

    with pytest.raises(build.MissingTool, match=f"needs Python.h, and {tmp_path} has none.*python3-dev.*UV_PYTHON"):
        build.compile_modules(ROOT / "worker", tmp_path)
    assert dict(os.environ) == before


def test_without_headers_the_setup_fetches_nothing_and_goes_on(
    build: ModuleType, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler from the package index does not bring Python.h, and nothing else does."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(bare))
    monkeypatch.setenv("OTS_TUNNEL_BUILD", "fetch")

    (warning,) = initialize(build)

    assert warning.startswith("the codec is not compiled, the Python one is used: compiling the codec needs Python.h")
    assert build.CodecBuildHook().dependencies() == []


@pytest.mark.usefixtures("bare")
def test_another_choice_is_refused(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTS_TUNNEL_BUILD", "fast")

    with pytest.raises(ValueError, match="OTS_TUNNEL_BUILD: found 'fast', allowed are auto, fetch, compiled, python"):
        initialize(build)
    with pytest.raises(ValueError, match="OTS_TUNNEL_BUILD: found 'fast'"):
        build.CodecBuildHook().dependencies()
