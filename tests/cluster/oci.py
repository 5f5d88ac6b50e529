#!/usr/bin/env python3
"""Small image archives without any tool: pack one program as an image, or tell the name inside an archive.

oci.py NAME OUT.tar --file PROGRAM --entrypoint /PROGRAM
oci.py --name-of ARCHIVE.tar
"""

import argparse
import hashlib
import io
import json
import platform
import sys
import tarfile
from pathlib import Path
from typing import Any

MEDIA = "application/vnd.oci.image."
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def name_of(path: str) -> str:
    """The full name of the one image in a Docker archive (images.sh makes these) or an OCI archive."""
    with tarfile.open(path) as archive:
        names = archive.getnames()
        listing = archive.extractfile("manifest.json" if "manifest.json" in names else "index.json")
        assert listing is not None
        content = json.load(listing)
    if isinstance(content, list):
        found = content[0].get("RepoTags") or []
    else:
        found = [content["manifests"][0].get("annotations", {}).get("io.containerd.image.name")]
    if not found or not found[0]:
        sys.exit(f"oci.py: {path} does not say the name of its image")
    return str(found[0])


def add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    """One file, with no times or owners in it, so that the same input gives the same digest."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))


def pack(name: str, out: str, program: Path, entrypoint: str) -> None:
    """An image of one layer with one file in it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        add(tar, program.name, program.read_bytes(), 0o755)
    with tarfile.open(out, "w") as archive:

        def blob(media: str, data: bytes) -> dict[str, Any]:
            digest = hashlib.sha256(data).hexdigest()
            add(archive, f"blobs/sha256/{digest}", data)
            return {"mediaType": MEDIA + media, "digest": f"sha256:{digest}", "size": len(data)}

        layers = [blob("layer.v1.tar", layer.getvalue())]
        config = {
            "architecture": MACHINES[platform.machine()],
            "os": "linux",
            "config": {"Entrypoint": [entrypoint]},
            "rootfs": {"type": "layers", "diff_ids": [layers[0]["digest"]]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MEDIA + "manifest.v1+json",
            "config": blob("config.v1+json", json.dumps(config).encode()),
            "layers": layers,
        }
        entry = blob("manifest.v1+json", json.dumps(manifest).encode())
        entry["annotations"] = {"io.containerd.image.name": name}
        add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())
        add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')


def main() -> None:
    """Read the arguments and do it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--entrypoint")
    parser.add_argument("--name-of")
    options = parser.parse_args()
    if options.name_of:
        print(name_of(options.name_of))
    elif options.name and options.out and options.file and options.entrypoint:
        pack(options.name, options.out, options.file, options.entrypoint)
    else:
        parser.error("give NAME OUT --file --entrypoint, or --name-of")


if __name__ == "__main__":
    main()
