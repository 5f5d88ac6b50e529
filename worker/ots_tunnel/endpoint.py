"""Syntax of endpoints and instance names, and the identity of an instance; pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ots_tunnel.errors import ConfigError

ENDPOINT = r"^https?://[^/?#\s]+/?$"
ENDPOINT_WORDS = "http(s)://host[:port] without a path, such as https://shop.cn-hangzhou.ots.aliyuncs.com"
INSTANCE = r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$"
INSTANCE_WORDS = "letters, digits and hyphens, not at either end"


def check_place(endpoint: str, instance: str) -> None:
    """Refuse malformed endpoints and instance names before a host of that name is resolved.

    Raises:
        ConfigError: names the argument.
    """
    if not re.match(ENDPOINT, endpoint):
        raise ConfigError(f"endpoint: found {endpoint!r}, allowed is {ENDPOINT_WORDS}")
    if not re.match(INSTANCE, instance):
        raise ConfigError(f"instance: found {instance!r}, allowed is {INSTANCE_WORDS}")


def region_of(endpoint: str) -> str:
    """Distinguishes instances of equal name: the region of a vendor's host, or any other host with its port.

    An instance has a public, an internal and a VPC host; they differ after the region.
    """
    host = (urlsplit(endpoint).netloc or endpoint).lower()
    return host.split(".")[1] if host.endswith(".aliyuncs.com") and host.count(".") > 2 else host


def table_identity(endpoint: str, instance: str, table: str) -> tuple[str, str, str]:
    """What distinguishes a table from all others: two addresses with the same identity lead to one table."""
    return region_of(endpoint), instance, table
