"""Build hook of the wheel: compiles the codec, or says what it misses.

Without the compiled twin the package works as well, only slower, so an install needs no compiler: it warns, and so does
the worker when it starts. The environment's `OTS_TUNNEL_BUILD` chooses otherwise: `python` does not compile; `fetch`
(that of `make setup`) lets the build fetch a compiler from the package index where the machine has none; `compiled`
(that of the images) does so too, and fails if it cannot compile.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "OTS_TUNNEL_BUILD"
CHOICES = ("auto", "fetch", "compiled", "python")
#: Import name of each compiled module; its source lies where the module does.
MODULES = ("ots_tunnel.protocol.plainbuffer._native",)
#: Usual names of a C compiler.
COMPILERS = ("cc", "gcc", "clang")
#: Has a C compiler with the headers of the C library. 100 MB, so it is fetched only where it is needed and asked for.
COMPILER_PACKAGE = "ziglang==0.17.1"


class MissingTool(SystemExit):
    """Something without which nothing can be compiled; it ends the build with what to install, without a traceback."""


class CodecBuildHook(BuildHookInterface):
    """Puts the compiled modules into the wheel; an editable install gets them into the source tree."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def dependencies(self) -> list[str]:
        """What the build requires beside the packages of pyproject.toml."""
        return [COMPILER_PACKAGE] if _may_fetch(build_choice()) else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile and register what was built.

        Raises:
            Exception: whatever the compiler reports, or a MissingTool, where compiling is demanded.
        """
        choice = build_choice()
        if choice == "python":
            return
        source = Path(self.root) / "worker"
        self._folder = Path(tempfile.mkdtemp(prefix="ots-tunnel-codec-"))
        try:
            built = compile_modules(source, self._folder)
        except (Exception, SystemExit) as error:  # a compiler fails in many ways; none of them may stop an install
            if choice == "compiled":
                raise
            self.app.display_warning(f"the codec is not compiled, the Python one is used: {error}")
            return
        for module, path in built.items():
            target = source.joinpath(*module.split(".")).parent / path.name
            if version == "editable":
                # Not in place: that would crash every process that has it loaded.
                fresh = target.with_name(f"{target.name}.new")
                fresh.write_bytes(path.read_bytes())
                fresh.replace(target)
            else:
                build_data["force_include"][str(path)] = str(target.relative_to(source))
        if version != "editable":
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel has taken over."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def build_choice() -> str:
    """What the environment asks for, one of `CHOICES`.

    Raises:
        ValueError: it asks for something else.
    """
    choice = os.environ.get(VARIABLE, "auto")
    if choice not in CHOICES:
        raise ValueError(f"{VARIABLE}: found {choice!r}, allowed are {', '.join(CHOICES)}")
    return choice


def _may_fetch(choice: str) -> bool:
    return choice in {"fetch", "compiled"} and installed_compiler() is None and _headers().is_file()


def _headers() -> Path:
    return Path(sysconfig.get_path("include"), "Python.h")


def installed_compiler() -> str | None:
    """The command of a C compiler: `CC`, that of the interpreter's own build, or a usual one; None if there is none."""
    if os.environ.get("CC"):
        return os.environ["CC"]
    commands = [sysconfig.get_config_var("CC") or "", *COMPILERS]
    return next((command for command in commands if command and shutil.which(shlex.split(command)[0])), None)


def compiler_settings(folder: Path) -> dict[str, str]:
    """Variables of the environment that make setuptools use the compiler that is there.

    Args:
        folder: for what the compiler of `COMPILER_PACKAGE` keeps between two calls.

    Raises:
        MissingTool: there is no C compiler, or no header of the interpreter.
    """
    headers = _headers()
    if not headers.is_file():
        raise MissingTool(
            f"compiling the codec needs Python.h, and {headers.parent} has none: install the interpreter's headers "
            f"(Debian: apt-get install python3-dev), choose another one, for example by UV_PYTHON, or set "
            f"{VARIABLE}=python for the slower codec in Python"
        )
    command = installed_compiler()
    if command is not None:
        return {"CC": command}
    if find_spec("ziglang") is None:
        raise MissingTool(
            f"compiling the codec needs a C compiler, and there is none: CC is not set, and {', '.join(COMPILERS)} are "
            f"not in PATH: install one (Debian: apt-get install gcc libc6-dev), install {COMPILER_PACKAGE} beside the "
            f"build, or set {VARIABLE}=python for the slower codec in Python"
        )
    command = f"{shlex.quote(sys.executable)} -m ziglang cc"
    # LDSHARED: what the interpreter was linked with may be options that this linker does not have
    return {
        "CC": command,
        "LDSHARED": f"{command} -shared",
        "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(folder / "zig"),
    }


def compile_modules(source: Path, folder: Path) -> dict[str, Path]:
    """Compile every module from `source`; everything that is built lies in `folder`.

    Raises:
        MissingTool: see `compiler_settings`.
    """
    os.environ.update(compiler_settings(folder))  # setuptools reads it there; a build is a process of its own
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extensions = [
        Extension(module, [str(source.joinpath(*module.split(".")).with_suffix(".pyx"))], extra_compile_args=["-g0"])
        for module in MODULES
    ]
    command = build_ext(Distribution({"ext_modules": cythonize(extensions, build_dir=str(folder), quiet=True)}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
    command.ensure_finalized()
    command.run()
    return {module: Path(command.get_ext_fullpath(module)) for module in MODULES}
