"""The bytes of an image are counted once, for the package, the library or the program that they belong to."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from tests.bench.size.parts import LARGE, Part, files_of, lay_over, parts_of

PACKAGES = "opt/ots-tunnel/lib/python3.11/site-packages"


def test_a_package_has_its_libraries_its_description_and_its_bytecode() -> None:
    files = {
        f"{PACKAGES}/big/a.py": LARGE,
        f"{PACKAGES}/big/__pycache__/a.cpython-311.pyc": 5,
        f"{PACKAGES}/big.libs/b.so": 3,
        f"{PACKAGES}/big-1.2.dist-info/RECORD": 2,
    }

    assert parts_of(files) == {"package big": Part(LARGE + 10, 5)}


def test_what_is_small_is_one_part_and_what_is_ours_another() -> None:
    files = {
        f"{PACKAGES}/six.py": 7,
        f"{PACKAGES}/ots_tunnel/a.py": 100,
        f"{PACKAGES}/ots_emulator/a.pyc": 10,
        "opt/dist/ots_tunnel-1.whl": 1,
        "usr/lib/python3.11/os.py": 50,
        "usr/bin/python3.11": 20,
        "usr/bin/tini": 30,
    }

    assert parts_of(files) == {
        "ots-tunnel": Part(111, 10),
        "Python": Part(70),
        "Debian": Part(30),
        "smaller packages": Part(7),
    }


def test_a_layer_replaces_and_removes_files_of_those_below() -> None:
    found = {"a/b": 1, "a/c": 2, "a/d/e": 3, "ab": 4, "f/g": 5}

    lay_over(found, [("./a/b", 10), ("a/.wh.c", 0), ("a/.wh.d", 0), ("f/.wh..wh..opq", 0), ("f/h", 6)])

    assert found == {"a/b": 10, "ab": 4, "f/h": 6}


def test_the_layers_of_an_archive_are_read_in_the_order_of_its_manifest(tmp_path: Path) -> None:
    def packed(**members: bytes) -> bytes:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return content.getvalue()

    below, above = packed(a=b"xxx", b=b"x"), packed(a=b"xx")
    manifest = json.dumps([{"Layers": ["below", "above"]}]).encode()
    (tmp_path / "image.tar").write_bytes(packed(**{"above": above, "below": below, "manifest.json": manifest}))

    assert files_of(tmp_path / "image.tar") == {"a": 2, "b": 1}
