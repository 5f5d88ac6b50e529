"""Kubeconfigs of API servers of the tests."""

from __future__ import annotations

from pathlib import Path

import yaml


def write_kubeconfig(folder: Path, url: str, *, authority: Path | None = None) -> Path:
    """Write the kubeconfig of an API server that takes any token.

    Args:
        authority: the certificate by which the server is known, where `url` is https.
    """
    cluster = {"server": url} | ({"certificate-authority": str(authority)} if authority else {})
    named = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "hush"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}))
    return path
