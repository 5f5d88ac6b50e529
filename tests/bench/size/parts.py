"""The parts of an image: which package, library or program its bytes belong to."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: Our own packages, as one part.
OURS = frozenset({"ots_tunnel", "ots_emulator", "ots_tunnel_operator"})
#: Bytes from which a package of others is a part of its own.
LARGE = 2_000_000
_PACKAGES = re.compile(r"opt/ots-tunnel/lib/python3[^/]*/site-packages/(?P<name>[^/]+)")
#: The folder `NAME.libs` has the libraries of the package NAME, and `NAME-VERSION.dist-info` its description.
_PACKAGE_NAME = re.compile(r"(\.libs|-[^-]*\.dist-info|\.py)$")
_PYTHON = re.compile(r"usr/(local/)?(lib/python3|bin/python3|lib/libpython3)")
#: By which a layer removes a file of a layer below, and everything below a folder.
_GONE, _ALL_GONE = ".wh.", ".wh..wh..opq"


@dataclass
class Part:
    """A part of an image.

    Args:
        files: bytes of its files.
        bytecode: of these, Python's byte-code.
    """

    files: int = 0
    bytecode: int = 0


def files_of(archive: Path) -> dict[str, int]:
    """Paths and bytes of the files in an image, from the layers of its Docker archive (`images.sh`)."""
    found: dict[str, int] = {}
    with tarfile.open(archive) as image:
        manifest = image.extractfile("manifest.json")
        assert manifest is not None
        for name in json.load(manifest)[0]["Layers"]:
            with tarfile.open(fileobj=image.extractfile(name)) as layer:
                lay_over(found, ((each.name, each.size) for each in layer if each.isfile() or each.issym()))
    return found


def lay_over(found: dict[str, int], layer: Iterable[tuple[str, int]]) -> None:
    """Lay a layer's files over those of the layers below it."""
    for name, size in layer:
        path = PurePosixPath(name.removeprefix("./"))
        if path.name.startswith(_GONE):
            above = f"{path.parent}/"
            gone = above if path.name == _ALL_GONE else above.removeprefix("./") + path.name.removeprefix(_GONE)
            for each in [each for each in found if each == gone or each.startswith(gone.rstrip("/") + "/")]:
                del found[each]
        else:
            found[str(path)] = size


def parts_of(files: Mapping[str, int]) -> dict[str, Part]:
    """The parts of an image by their names, the largest first."""
    parts: dict[str, Part] = defaultdict(Part)
    for path, size in files.items():
        part = parts[_part_of(path)]
        part.files += size
        if path.endswith(".pyc"):
            part.bytecode += size
    small = [name for name, part in parts.items() if name.startswith("package ") and part.files < LARGE]
    for name in small:
        part = parts.pop(name)
        parts["smaller packages"].files += part.files
        parts["smaller packages"].bytecode += part.bytecode
    return dict(sorted(parts.items(), key=lambda item: -item[1].files))


def _part_of(path: str) -> str:
    package = _PACKAGES.match(path)
    if package is None:
        return "Python" if _PYTHON.match(path) else "ots-tunnel" if path.startswith("opt/dist/") else "Debian"
    name = _PACKAGE_NAME.sub("", package["name"])
    return "ots-tunnel" if name in OURS else f"package {name}"
