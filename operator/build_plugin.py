"""Build `kubectl ott` as one archive with a manifest for krew.

    python operator/build_plugin.py [--folder build/plugin] [--url https://...]

The archive holds the program `kubectl-ott`, a Python zip application with everything it needs, click included. So a
user needs kubectl and Python, and installs nothing else. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import io
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "operator" / "ots_tunnel_operator"
#: Modules of the operator that the plugin uses, beside folders: its own, and what it shares with the operator.
MODULES = ("__init__.py", "memory_limit.py", "names.py", "reasons.py", "sink_refusals.py", "times.py")
FOLDERS = ("plugin", "reset")
#: The earliest time that a zip file can hold, for every entry.
TIME = (1980, 1, 1, 0, 0, 0)

#: It has to be read by any Python, so that an old one gets a sentence and no traceback.
MAIN = """import sys

if sys.version_info < (3, 11):
    sys.exit("kubectl ott needs Python 3.11 or newer, found " + sys.version.split()[0])

from ots_tunnel_operator.plugin.command import main

main()
"""

MANIFEST = """apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: ott
spec:
  version: v{version}
  homepage: {url}
  shortDescription: Say what TablestoreTunnel objects do and why
  description: |
    Lists the objects of ots-tunnel with their lag, shows which worker has which channel, says in sentences what an
    object does, waits for and needs, and pauses, resumes, restarts or resets it.
  caveats: |
    Needs Python 3.11 or newer as python3 on the PATH.
  platforms:
    - selector:
        matchExpressions:
          - {{key: os, operator: In, values: [linux, darwin]}}
      uri: {url}/{archive}
      sha256: {digest}
      bin: kubectl-ott
      files:
        - {{from: kubectl-ott, to: .}}
        - {{from: LICENSE, to: .}}
        - {{from: LICENSE-click, to: .}}
"""


def entries(version: str) -> Iterator[tuple[str, bytes]]:
    """Path and content of everything in the program."""
    yield "__main__.py", MAIN.encode()
    # what `--version` reads
    yield (
        f"ots_tunnel-{version}.dist-info/METADATA",
        f"Metadata-Version: 2.1\nName: ots-tunnel\nVersion: {version}\n".encode(),
    )
    library = Path(click.__file__).parent
    own = [PACKAGE / name for name in MODULES] + sorted(
        path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py")
    )
    for root, paths in ((PACKAGE, own), (library, sorted(library.rglob("*.py")))):
        for path in paths:
            yield f"{root.name}/{path.relative_to(root).as_posix()}", path.read_bytes()


def program(version: str) -> bytes:
    """The zip application: a line for the shell, then the zip file."""
    content = io.BytesIO(b"")
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in entries(version):
            entry = zipfile.ZipInfo(path, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return b"#!/usr/bin/env python3\n" + content.getvalue()


def archived(version: str) -> bytes:
    """The archive: the program and the licences."""
    licence = next(
        Path(str(path.locate())).read_bytes()
        for path in importlib.metadata.files("click") or ()
        if path.name.startswith("LICENSE")
    )
    files = {
        "kubectl-ott": (program(version), 0o755),
        "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644),
        "LICENSE-click": (licence, 0o644),
    }
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(content.getvalue(), mtime=0)


def build(folder: Path, url: str) -> Path:
    """Write archive and manifest into a folder, and return the path of the archive."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"kubectl-ott-{version}.tar.gz"
    data = archived(version)
    archive.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    manifest = MANIFEST.format(version=version, url=url.rstrip("/"), archive=archive.name, digest=digest)
    (folder / "ott.yaml").write_text(manifest)
    return archive


def main() -> None:
    """Read the options and build."""
    parser = argparse.ArgumentParser(description="Build kubectl ott as one archive with a manifest for krew.")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "plugin")
    parser.add_argument("--url", default="https://releases.example/ots-tunnel", help="where the archive is published")
    options = parser.parse_args()
    print(build(options.folder, options.url))


if __name__ == "__main__":
    main()
