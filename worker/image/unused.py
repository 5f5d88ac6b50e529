"""Removes from an image's packages what no program of the image loads.

    python3 unused.py /opt/ots-tunnel/lib/python3.11/site-packages [--strip]

Prints what each rule removed. A rule whose package is installed and that finds nothing ends with exit code 1: a new
version of the package is laid out in another way, and what is large there now is to be looked at. --strip also takes
symbols and debugging information out of compiled modules, by the program `strip`; it replaces the files.

That the rest is complete shows trial.py, which the build of the image runs in it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: The API of Kubernetes as Python: classes and calls of all kinds, each imported when it is named. The operator names
#: none, it sends and gets plain dictionaries.
_KINDS = tuple(f"kubernetes/{half}client/{folder}/[a-z]*.py" for half in ("", "aio/") for folder in ("api", "models"))


@dataclass(frozen=True)
class Unused:
    """What is not needed of a package.

    Args:
        package: folder of the package; where it is missing the rule has nothing to do.
        patterns: of paths in the folder of all packages.
        why: nothing loads it.
    """

    package: str
    patterns: tuple[str, ...]
    why: str

    def paths(self, packages: Path) -> Iterator[Path]:
        """Files and folders that the rule names, each once and without those that another one contains."""
        found = {path for pattern in self.patterns for path in packages.glob(pattern)}
        return (path for path in sorted(found) if found.isdisjoint(path.parents))


UNUSED = (
    Unused("kubernetes", _KINDS, "the operator sends and gets plain dictionaries"),
    Unused(
        "numpy",
        # with its description: in an image that is made from this one, pip installs it where a package needs it
        ("numpy", "numpy.libs", "numpy-*.dist-info"),
        "the vendor's SDK names it for a kind of tables that nothing here uses, Arrow takes it where it is",
    ),
    Unused(
        "pyarrow",
        (
            "pyarrow/_flight.*",
            "pyarrow/libarrow_flight.*",
            "pyarrow/libarrow_python_flight.*",
            "pyarrow/_s3fs.*",
            "pyarrow/libarrow_s3.*",
        ),
        "Flight is Arrow's own protocol, and obstore writes to buckets",
    ),
    Unused(
        "pyarrow",
        # libNAME.so.26 is the one that modules are linked to
        ("pyarrow/libarrow_python*.so", "pyarrow/libarrow_python*.so.*.*.*"),
        "the same library by other names, for linkers",
    ),
    Unused(
        "pyarrow",
        (
            "pyarrow/include",
            "pyarrow/includes",
            "pyarrow/src",
            "pyarrow/tests",
            "pyarrow/_pyarrow_cpp_tests.*",
            "pyarrow/*.p[xy][dix]",
        ),
        "for compiling other packages, and tests",
    ),
    Unused(
        "tablestore",
        ("tablestore/ots_sdk/ots_sdk.so",),
        "compiled for Python 3.12; the SDK has the same in Python",
    ),
    Unused("confluent_kafka", ("confluent_kafka/schema_registry",), "the sink sends documents of its own"),
    Unused("pygments", ("pygments", "pygments-*.dist-info"), "rich colours programs with it, and commands print none"),
    Unused("uvloop", ("uvloop/**/*.pyx", "uvloop/**/*.pxd"), "sources of the compiled module"),
)


def remove_unused(packages: Path, rules: tuple[Unused, ...] = UNUSED) -> list[str]:
    """Remove what the rules name; returns a line for each rule, and fails where one is out of date.

    Raises:
        LookupError: the package of a rule is there, and nothing that it names.
    """
    lines = []
    present = {rule.package for rule in rules if (packages / rule.package).is_dir()}
    for rule in rules:
        if rule.package not in present:
            continue
        paths = list(rule.paths(packages))
        if not paths:
            raise LookupError(f"{rule.package}: nothing is named {', '.join(rule.patterns)} any more")
        size = sum(size_of(path) for path in paths)
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        lines.append(f"{size / 2**20:7.1f} MiB  {rule.package}: {rule.why}")
    return lines


def strip_symbols(packages: Path) -> str:
    """Take out of compiled modules what only linkers and debuggers read."""
    found = sorted(path for path in packages.rglob("*.so*") if path.is_file() and not path.is_symlink())
    modules = [path for path in found if path.open("rb").read(4) == b"\x7fELF"]
    before = sum(size_of(path) for path in modules)
    subprocess.run(["strip", "--strip-unneeded", *map(str, modules)], check=True)
    saved = before - sum(size_of(path) for path in modules)
    return f"{saved / 2**20:7.1f} MiB  symbols of {len(modules)} compiled modules"


def size_of(path: Path) -> int:
    """Bytes of a file, or of the files in a folder."""
    if path.is_dir():
        return sum(each.lstat().st_size for each in path.rglob("*") if not each.is_dir())
    return path.lstat().st_size


def main(arguments: list[str]) -> int:
    """Read the arguments, remove, print."""
    packages = Path(arguments[0])
    try:
        lines = remove_unused(packages)
    except LookupError as error:
        print(f"unused.py: {error}", file=sys.stderr)
        return 1
    if "--strip" in arguments[1:]:
        lines.append(strip_symbols(packages))
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
