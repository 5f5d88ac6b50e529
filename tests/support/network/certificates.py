"""Certificates for TLS servers of the tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def self_signed(folder: Path) -> Path:
    """A key and a certificate for localhost that signs itself, in one file."""
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    files = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem"))
    command = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files)
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "certificate.pem").read_bytes())
    return both


def of_private_authority(folder: Path) -> tuple[Path, Path]:
    """A new authority, and key and certificate for localhost in one file, which it has signed."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: str(folder / name) for name in ("ca.key", "ca.crt", "key.pem", "request.pem", "certificate.pem")}
    extensions = folder / "extensions"
    extensions.write_text("basicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost\n")
    new_key = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    authority = ("-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", made["ca.key"], "-out", made["ca.crt"])
    request = ("-subj", "/CN=localhost", "-keyout", made["key.pem"], "-out", made["request.pem"])
    signature = ("-req", "-days", "2", "-in", made["request.pem"], "-CA", made["ca.crt"], "-CAkey", made["ca.key"])
    result = ("-CAcreateserial", "-extfile", str(extensions), "-out", made["certificate.pem"])
    for command in ((*new_key, *authority), (*new_key, *request), ("openssl", "x509", *signature, *result)):
        subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "certificate.pem").read_bytes())
    return folder / "ca.crt", both
