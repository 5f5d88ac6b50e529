"""Build hook of the wheel: compiles the codec where there is a compiler, and says so where there is none.

Without the compiled twin the package works as well, only slower, so a missing compiler is no error. Two settings of
the environment: `OTS_TUNNEL_BUILD=python` does not compile, `OTS_TUNNEL_BUILD=compiled` fails if it cannot.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "OTS_TUNNEL_BUILD"
CHOICES = ("auto", "compiled", "python")
#: Import name of each compiled module; its source lies where the module does.
MODULES = ("ots_tunnel.protocol.plainbuffer._native",)


class CodecBuildHook(BuildHookInterface):
    """Puts the compiled modules into the wheel; an editable install gets them into the source tree."""

    PLUGIN_NAME = "custom"
    _folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile and register what was built.

        Raises:
            Exception: whatever the compiler reports, where compiling is demanded.
        """
        choice = os.environ.get(VARIABLE, "auto")
        if choice not in CHOICES:
            raise ValueError(f"{VARIABLE}: found {choice!r}, allowed are {', '.join(CHOICES)}")
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


def compile_modules(source: Path, folder: Path) -> dict[str, Path]:
    """Compile every module from `source`; everything that is built lies in `folder`."""
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
