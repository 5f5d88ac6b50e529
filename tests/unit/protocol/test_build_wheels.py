"""`make wheels` with a double of uv: which Pythons get a wheel, and what is said of the others."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: Finds 3.11 and 3.12, fetches nothing, builds an empty file, and makes environments whose Python of 3.12 fails.
UV = """#!/bin/sh
case "$1 $2" in
"python find")
  for version; do :; done
  case $version in 3.11|3.12) echo "/interpreters/$version" ;; *) exit 2 ;; esac ;;
"python install") echo "warning: slow" >&2; echo "error: no route to the downloads" >&2; exit 2 ;;
"build --quiet") : >"$7/ots_tunnel-1-$(basename "$5").whl" ;;
"venv --quiet")
  mkdir -p "$5/bin"
  case $4 in *3.12) end='echo "ImportError: _native" >&2; exit 1' ;; *) end='exit 0' ;; esac
  printf '#!/bin/sh\\n%s\\n' "$end" >"$5/bin/python"; chmod +x "$5/bin/python" ;;
esac
"""


@pytest.fixture
def uv(tmp_path: Path) -> Path:
    program = tmp_path / "uv"
    program.write_text(UV)
    program.chmod(0o755)
    return program


def build(uv: Path, folder: Path, *pythons: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "worker" / "build_wheels.py"), "--folder", str(folder), "--python", *pythons],
        env={**os.environ, "UV": str(uv)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_python_gets_a_wheel_that_was_tried(uv: Path, tmp_path: Path) -> None:
    ended = build(uv, tmp_path / "dist", "3.11")

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"Python 3.11: {tmp_path}/dist/ots_tunnel-1-3.11.whl works (/interpreters/3.11)\n"
    assert (tmp_path / "dist" / "ots_tunnel-1-3.11.whl").exists()


def test_a_python_that_cannot_be_had_is_named_and_the_others_are_built(uv: Path, tmp_path: Path) -> None:
    ended = build(uv, tmp_path / "dist", "3.13", "3.11")

    assert ended.returncode == 2
    assert ended.stderr == (
        "Python 3.13: no interpreter here, and uv can fetch none: error: no route to the downloads\n"
    )
    assert "Python 3.11: " in ended.stdout


def test_a_wheel_that_does_not_work_fails_the_command(uv: Path, tmp_path: Path) -> None:
    ended = build(uv, tmp_path / "dist", "3.13", "3.12")

    assert ended.returncode == 1
    assert "Python 3.12: ImportError: _native\n" in ended.stderr


def test_the_oldest_python_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["requires-python"] == ">=3.11"
    assert 'PYTHONS = ("3.11", ' in (ROOT / "worker" / "build_wheels.py").read_text()
