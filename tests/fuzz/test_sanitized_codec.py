"""The tests of the compiled codec with its bounds watched: built with AddressSanitizer and UBSan, many more examples.

Bounds checks are off in the codec, and a read behind the end of a page may go unnoticed for years.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.lacking import lack
from tests.support.programs.processes import ROOT, inherited_environment

SANITIZERS = "-fsanitize=address,undefined"
LIBRARIES = ("libasan.so", "libubsan.so", "libstdc++.so")
#: Of every compiled path: pages, records, requests, MD5, JSON, envelopes, filters, columns.
TESTS = (
    "tests/unit/protocol",
    "tests/stateful/test_compiled_codec.py",
    "tests/stateful/test_compiled_shard_pages.py",
    "tests/stateful/test_matching.py",
    "tests/stateful/test_requests.py",
    "tests/oracle/test_plainbuffer_against_sdk.py",
    "tests/unit/sinks/test_json_bytes.py",
    "tests/unit/sinks/test_json_repeats.py",
    "tests/unit/sinks/test_envelopes.py",
    "tests/unit/sinks/middleware/test_selection.py",
    "tests/unit/sinks/table/test_encoding.py",
    "tests/unit/sinks/files/test_change_columns.py",
    "tests/unit/sinks/files/test_refusals.py",
    "tests/unit/sinks/files/test_typed_columns.py",
    "tests/unit/spark/test_typed_columns.py",
)
BUILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import build_codec
for module, path in build_codec.compile_modules(Path(sys.argv[1]), Path(sys.argv[2])).items():
    target = Path(sys.argv[1]).joinpath(*module.split(".")).parent / path.name
    target.write_bytes(path.read_bytes())
    print(target)
"""
#: Says which codec is used, then runs the tests in this process, where the libraries are loaded, and says which of the
#: functions of the codec no test has called.
RUN = """
import functools, sys, pytest
from ots_tunnel.protocol.plainbuffer import _native

uncalled = {name for name, each in vars(_native).items() if callable(each) and not isinstance(each, type)}
uncalled = {name for name in uncalled if not name.startswith("_")}

def noted(name, function):
    @functools.wraps(function)
    def call(*given, **named):
        uncalled.discard(name)
        return function(*given, **named)
    return call

print("codec", _native.__file__, "has", len(uncalled), "functions")
for name in sorted(uncalled):
    setattr(_native, name, noted(name, getattr(_native, name)))
code = pytest.main(sys.argv[1:])
print("uncalled:", *sorted(uncalled))
sys.exit(code)
"""


def library(name: str) -> str:
    """A library of the compiler."""
    gcc = shutil.which("gcc")
    if gcc is None:
        lack("compiler", "gcc is missing")
    found = subprocess.run([gcc, f"-print-file-name={name}"], capture_output=True, check=True, text=True).stdout.strip()
    if not Path(found).is_absolute():
        lack("compiler", f"gcc has no {name}")
    return found


@pytest.fixture
def sanitized(tmp_path: Path) -> Path:
    """A copy of the worker's sources with a codec that is built with the sanitizers."""
    library(LIBRARIES[0])  # skips before anything is built
    source = tmp_path / "worker"
    shutil.copytree(ROOT / "worker", source, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    tools = tmp_path / "tools"
    subprocess.run([sys.executable, "-m", "venv", tools], check=True)
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    pip = [tools / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *wanted], check=True)
    flags = {"CFLAGS": f"-O1 -fno-omit-frame-pointer {SANITIZERS}", "LDFLAGS": SANITIZERS}
    command = [tools / "bin" / "python", "-c", BUILD, source, tmp_path / "build"]
    built = subprocess.run(command, env={**os.environ, **flags}, capture_output=True, check=True, text=True)
    (path,) = built.stdout.split()
    assert b"__asan_init" in Path(path).read_bytes()
    return source


@pytest.mark.long
@pytest.mark.lasts(600)
@pytest.mark.unmeasured
def test_no_path_of_the_codec_reads_or_writes_beyond_its_bounds(sanitized: Path) -> None:
    environment = inherited_environment(
        sanitized,
        ROOT,
        LD_PRELOAD=" ".join(library(name) for name in LIBRARIES),
        # the interpreter itself leaks on purpose; its own allocator would hide blocks from the sanitizer
        ASAN_OPTIONS="detect_leaks=0:abort_on_error=1",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
        PYTHONMALLOC="malloc",
        OTS_TUNNEL_CODEC="compiled",
    )
    # the sanitizers write to the standard error itself, which pytest must not keep for itself
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not long", "--capture=sys", "--timeout=600"]

    command = [sys.executable, "-c", RUN, *options, "--hypothesis-profile=many", *TESTS]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3_000)

    assert f"codec {sanitized}" in run.stdout
    assert run.returncode == 0, run.stdout[-5_000:] + run.stderr[:5_000]
    # a function that is named here needs its tests in TESTS
    assert [line for line in run.stdout.splitlines() if line.startswith("uncalled:")] == ["uncalled:"]
