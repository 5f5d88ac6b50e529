"""Syntax of endpoints and instance names, and the identity of an instance; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from ots_tunnel.errors import ConfigError

#: One label of a host name; the underscore is for names of container networks.
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_GROUP = r"[0-9A-Fa-f]{1,4}"
#: An address of IP version 6, RFC 4291 2.2, without an embedded one of version 4.
_IPV6 = "|".join(
    [
        f"({_GROUP}:){{7}}{_GROUP}",
        f"({_GROUP}:){{1,7}}:",
        *(f"({_GROUP}:){{1,{left}}}(:{_GROUP}){{1,{7 - left}}}" for left in range(6, 0, -1)),
        f":((:{_GROUP}){{1,7}}|:)",
    ]
)
#: 1 to 65535.
_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
#: Only what Python's `re` and Go's RE2 read alike, because the API server checks the same expression.
ENDPOINT = rf"^https?://({_LABEL}(\.{_LABEL})*|\[({_IPV6})\])(:({_PORT}))?/?$"
ENDPOINT_WORDS = (
    "http(s)://host[:port] with a port from 1 to 65535, without user name, path and query, "
    "such as https://shop.cn-hangzhou.ots.aliyuncs.com"
)
#: Port that an endpoint without one has.
_DEFAULT_PORTS: Mapping[str, str] = {"http": ":80", "https": ":443"}
#: Characters; a host name has 253 at most.
MAX_ENDPOINT = 300
INSTANCE = r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$"
INSTANCE_WORDS = "letters, digits and hyphens, not at either end"


def is_endpoint(text: str) -> bool:
    """Whether a text is an endpoint that a connection can be opened to, as far as its syntax tells."""
    # fullmatch, because `$` also matches before a line feed at the end
    return len(text) <= MAX_ENDPOINT and re.fullmatch(ENDPOINT, text) is not None


def check_place(endpoint: str, instance: str) -> None:
    """Refuse malformed endpoints and instance names before a host of that name is resolved.

    Raises:
        ConfigError: names the argument.
    """
    if not is_endpoint(endpoint):
        found = "a user name or password" if "@" in endpoint else repr(endpoint)
        raise ConfigError(f"endpoint: found {found}, allowed is {ENDPOINT_WORDS}")
    if not re.fullmatch(INSTANCE, instance):
        raise ConfigError(f"instance: found {instance!r}, allowed is {INSTANCE_WORDS}")


@lru_cache(maxsize=1024)
def region_of(endpoint: str) -> str:
    """Distinguishes instances of equal name: the region of a vendor's host, or any other host with its port.

    An instance has a public, an internal and a VPC host; they differ after the region. A port that is the default of
    the scheme is left out.
    """
    host = host_of(endpoint)
    return host.split(".")[1] if is_vendor_host(endpoint) else host


def is_vendor_host(endpoint: str) -> bool:
    """Whether an endpoint is a host of the vendor, whose name holds its region."""
    host = host_of(endpoint)
    return host.endswith(".aliyuncs.com") and host.count(".") > 2


def host_of(endpoint: str) -> str:
    """Host of an endpoint in lower case, with its port unless it is the default one of the scheme."""
    url = urlsplit(endpoint)
    return (url.netloc or endpoint).lower().removesuffix(_DEFAULT_PORTS.get(url.scheme, ""))


def table_identity(endpoint: str, instance: str, table: str) -> tuple[str, str, str]:
    """What distinguishes a table from all others: two addresses with the same identity lead to one table."""
    return region_of(endpoint), instance, table
