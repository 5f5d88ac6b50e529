"""The format `ots` with other minors of PySpark than the one of `uv.lock`, and that one through Spark Connect.

    python -m tests.spark.matrix MINOR...

Each minor has an environment of its own in the cache folder: the package with the extra `spark`, whose range is tried
by that, the minor's PySpark, and the other packages as `uv.lock` has them. PySpark 3.5 is there to be refused. Exit
code 2 says that an environment could not be made, as without a network; packages that exclude each other are a failure.

A minor runs what goes through its Spark, in one process with one session: reading, writing, filters and streams as far
as it has them. Not run with each minor:

- tests that call the classes of the source without Spark (`test_source_alone`, `test_options_alone`,
  `test_stream_alone`): options, schemas, rows. What these take from PySpark, base classes and types, every session uses
  as well. They run with the lock's minor in `make test`.
- Spark Connect: a server and a JVM of its own. It has the same source, and runs with the lock's minor alone, here.
- kills of all processes: a program of its own for each run. What they try is our order of checkpoints and Spark's,
  and takes minutes. They run with the lock's minor in `make test`.
- copies, documents of queries and Delta (`test_snapshot`, `test_query_driver`, `lake`): programs of our images,
  which have the lock's minor. Iceberg has a jar for no newer minor than 4.1, which runs its tests.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.suite.bytecode import compiling_once

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "build" / "reports"
LACKING = 2
#: What the tests import, beside the package and PySpark.
TOOLS = ("pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "hypothesis", "coverage")
#: Not as the lock has them: PySpark itself, and protobuf, of which Spark Connect wants a newer one than the lock.
#: The vendor's SDK, which makes the tests' tables, allows only the older one, and works with both.
UNLOCKED = ("pyspark", "py4j", "protobuf")
PROTOBUF = "protobuf>=6.31,<7"

SESSION = ("test_source.py", "test_writer.py", "test_minors.py")
CONNECT = ("test_connect.py",)
PUSH_DOWN = ("test_push_down.py",)
STREAM = ("test_stream.py",)
ICEBERG = ("lake/test_iceberg.py",)
#: Tests of these modules that only the lock's minor runs; see above.
LEFT_OUT = ("tests/spark/test_stream.py::test_two_kills_of_all_processes_leave_each_change_once",)


@dataclass(frozen=True)
class Minor:
    """One minor: the pinned release, and the modules of tests."""

    release: str
    modules: tuple[str, ...]


MINORS = {
    "3.5": Minor("3.5.9", ()),
    "4.0": Minor("4.0.5", (*SESSION, *STREAM)),
    "4.1": Minor("4.1.4", (*SESSION, *PUSH_DOWN, *STREAM, *ICEBERG)),
    # the lock's, whose other tests are those of `make test`
    "4.2": Minor("4.2.1", CONNECT),
    "4.3": Minor("4.3.0", (*SESSION, *PUSH_DOWN, *STREAM)),
}
#: What a user of Spark 3.5 reads, in a session of it.
REFUSAL = """
from pyspark.sql import SparkSession
from ots_tunnel.errors import ConfigError
from ots_tunnel.spark import register

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
try:
    register(spark)
except ConfigError as error:
    assert str(error).startswith(f"format 'ots': found PySpark {spark.version}, allowed are 4.0 and newer: "), error
    print(error)
else:
    raise AssertionError("PySpark 3.5 is not refused")
finally:
    spark.stop()
"""


class Lacking(Exception):
    """Something cannot be fetched or made on this machine."""


def uv(*words: str, folder: Path = ROOT) -> str:
    """What a command of uv prints.

    Raises:
        Lacking: it ends with another exit code than 0. AssertionError: packages exclude each other.
    """
    command = (os.environ.get("UV", "uv"), *words)
    try:
        ended = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    except OSError as error:
        raise Lacking(f"{command[0]}: {error}") from error
    assert "No solution found" not in ended.stderr, ended.stderr
    if ended.returncode:
        raise Lacking(ended.stderr.strip())
    return ended.stdout


def locked() -> list[str]:
    """Lines of requirements, as the lock has them."""
    extras = [word for name in ("spark", "emulator", "files", "cli") for word in ("--extra", name)]
    words = ("--frozen", "--no-emit-project", "--no-hashes", "--no-annotate", "--no-header", "--group", "test")
    lines = uv("export", "--quiet", *words, *extras).splitlines()
    return [line for line in lines if line.partition("==")[0] not in UNLOCKED]


def environment(minor: Minor) -> Path:
    """The interpreter of a minor's environment; made where it is missing, made anew where what it has is another.

    Raises:
        Lacking: something cannot be installed.
    """
    lines = locked()
    # for 3.5 the package alone: its extra excludes it
    extras = "[spark,emulator,files,cli]" if minor.modules else ""
    pyspark = f"pyspark{'[connect]' if minor.modules else ''}=={minor.release}"
    tools = TOOLS if minor.modules else ()
    metadata = (ROOT / "pyproject.toml").read_text()
    recipe = "\n".join((*lines, extras, pyspark, *tools, PROTOBUF, metadata, str(ROOT), sys.version))
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("OTS_TUNNEL_CACHE") or Path.home() / ".cache" / "ots-tunnel") / "pyspark"
    folder = cache / f"{minor.release}-{digest}"
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    for old in cache.glob(f"{minor.release}-*"):
        print(f"an environment of before is not used any more: {old}")
    print(f"installing PySpark {minor.release} into {folder} (a few minutes)", flush=True)
    uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
    constraints, overrides = folder / "constraints.txt", folder / "overrides.txt"
    constraints.write_text("\n".join(lines))
    overrides.write_text(PROTOBUF)
    files = ("--constraint", str(constraints), "--override", str(overrides))
    packages = ("--editable", f"{ROOT}{extras}", pyspark, *tools)
    # not in the project's folder, whose constraint on PySpark is that of the images
    uv("pip", "install", "--quiet", "--python", str(python), *files, *packages, folder=folder)
    (folder / "complete").touch()
    return python


def run(name: str, minor: Minor) -> int:
    """Run the tests of a minor; the exit code."""
    try:
        python = environment(minor)
    except Lacking as error:
        print(f"PySpark {minor.release} cannot be installed here: {error}", file=sys.stderr)
        return LACKING
    # a process of Python, forked for each query that is planned, imports the package and its libraries
    settings = {**compiling_once(), "PYSPARK_PYTHON": str(python)}
    settings["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    settings.pop("SPARK_HOME", None)
    if not minor.modules:
        return int(subprocess.run((python, "-c", REFUSAL), cwd=ROOT, env=settings, check=False).returncode != 0)
    modules = [f"tests/spark/{module}" for module in minor.modules]
    report = REPORTS / f"pyspark-{name}.xml"
    left_out = [word for test in LEFT_OUT for word in ("--deselect", test)]
    command = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report, *left_out, *modules)
    # pytest's own 2 is no lack of anything
    return int(subprocess.run(command, cwd=ROOT, env=settings, check=False).returncode != 0)


def main() -> int:
    """Run the minors that are named, or all of them."""
    names = sys.argv[1:] or list(MINORS)
    unknown = [name for name in names if name not in MINORS]
    if unknown:
        sys.exit(f"no such minor: {unknown[0]}; there are {', '.join(MINORS)}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    codes = {}
    for name in names:
        begin = time.monotonic()
        codes[name] = run(name, MINORS[name])
        print(f"PySpark {name}: exit code {codes[name]}, {time.monotonic() - begin:.0f} s", flush=True)
    return next((code for code in codes.values() if code not in (0, LACKING)), max(codes.values()))


if __name__ == "__main__":
    sys.exit(main())
