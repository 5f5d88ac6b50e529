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
