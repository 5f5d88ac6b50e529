#!/usr/bin/env python3
"""Image archives without a container tool.

oci.py pack NAME OUT.tar PROGRAM   make an image that contains only one program, at its root
oci.py name ARCHIVE.tar            print the image's full name
oci.py thin ARCHIVE.tar            write the archive to standard output without the layers whose digests come on
                                   standard input: a store imports every layer, also one that it has, and ours are large
"""

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


def read(archive: tarfile.TarFile, name: str) -> bytes:
    """One member of an archive."""
    member = archive.extractfile(name)
    assert member is not None
    return member.read()


def image_name(path: str) -> str:
    """Return the full name of the only image in a Docker archive of images.sh."""
    with tarfile.open(path) as archive:
        try:
            names = json.loads(read(archive, "manifest.json"))[0]["RepoTags"]
        except KeyError:
            sys.exit(f"oci.py: {path} is no Docker archive with a named image in it")
    return str(names[0])


def add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    """Add one file without times or owners, so that equal input gives an equal digest."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))


def blob(archive: tarfile.TarFile, media: str, data: bytes) -> dict[str, Any]:
    """Add one blob and return its descriptor for a manifest."""
    digest = hashlib.sha256(data).hexdigest()
    add(archive, f"blobs/sha256/{digest}", data)
    return {"mediaType": MEDIA + media, "digest": f"sha256:{digest}", "size": len(data)}


def finish(archive: tarfile.TarFile, name: str, config: dict[str, Any], layers: list[dict[str, Any]]) -> None:
    """Add manifest and index, which complete the blobs before them to an OCI archive."""
    manifest = {
        "schemaVersion": 2,
        "mediaType": MEDIA + "manifest.v1+json",
        "config": config,
        "layers": layers,
    }
    entry = blob(archive, "manifest.v1+json", json.dumps(manifest).encode())
    entry["annotations"] = {"io.containerd.image.name": name}
    add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())
    add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')


def pack(name: str, out: str, program: Path) -> None:
    """Write an image of one layer with one file."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        add(tar, program.name, program.read_bytes(), 0o755)
    with tarfile.open(out, "w") as archive:
        layer = blob(archive, "layer.v1.tar", content.getvalue())
        config = {
            "architecture": MACHINES[platform.machine()],
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"]},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        }
        finish(archive, name, blob(archive, "config.v1+json", json.dumps(config).encode()), [layer])


def thin(path: str, present: set[str]) -> None:
    """Write the archive to standard output as an OCI archive, without the layers in `present`."""
    name = image_name(path)
    with tarfile.open(path) as source, tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        image = json.loads(read(source, "manifest.json"))[0]
        config = read(source, image["Config"])
        layers = []
        # The layers are uncompressed, so that a layer's digest equals its diff id in the configuration.
        for member, digest in zip(image["Layers"], json.loads(config)["rootfs"]["diff_ids"], strict=True):
            found = source.getmember(member)
            if digest not in present:
                present.add(digest)  # an empty layer may occur twice
                info = tarfile.TarInfo(f"blobs/sha256/{digest.removeprefix('sha256:')}")
                info.size = found.size
                archive.addfile(info, source.extractfile(found))
            layers.append({"mediaType": MEDIA + "layer.v1.tar", "digest": digest, "size": found.size})
        finish(archive, name, blob(archive, "config.v1+json", config), layers)


def main() -> None:
    """Read the arguments and run the command."""
    match sys.argv[1:]:
        case ["pack", name, out, program]:
            pack(name, out, Path(program))
        case ["name", path]:
            print(image_name(path))
        case ["thin", path]:
            thin(path, set(sys.stdin.read().split()))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
