"""Which instance an endpoint belongs to; pure."""

from __future__ import annotations

from urllib.parse import urlsplit


def region_of(endpoint: str) -> str:
    """What tells apart instances of equal name: the region of a vendor's host, else the host with its port.

    One instance of the vendor has a public, an internal and a VPC host that differ behind the region.
    """
    host = (urlsplit(endpoint).netloc or endpoint).lower()
    return host.split(".")[1] if host.endswith(".aliyuncs.com") and host.count(".") > 2 else host
