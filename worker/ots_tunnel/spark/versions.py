"""What each minor of PySpark can do for the format `ots`, and the sentence that refuses what it cannot. Pure.

Where Spark Connect is used, the client's PySpark and the server's Spark may be of different minors; what runs on the
server asks for its own.
"""

from __future__ import annotations

import enum
import re

from ots_tunnel.errors import ConfigError

#: The session's setting that lets Spark give filters to a source in Python.
PUSH_DOWN_SETTING = "spark.sql.python.filterPushdown.enabled"

Minor = tuple[int, int]
#: From this minor on Spark tells a stream where a batch begins and how large it may be, and shows its figures.
BOUNDED_STREAMS: Minor = (4, 2)
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)")


class Ability(enum.Enum):
    """Something that PySpark has from one minor on: the minor, where a user asks for it, and the way out."""

    BATCH = (
        (4, 0),
        "format 'ots'",
        "Spark 3 has no data sources in Python; read files instead, which a worker's sink 'files' writes as Parquet",
    )
    PUSH_DOWN = (4, 1), "option 'pushFilters'", "it gives a source no filters; name the keys in option 'where'"

    def __init__(self, least: Minor, asked: str, way_out: str) -> None:
        self.least = least
        self.asked = asked
        self.way_out = way_out


def minor_of(version: str) -> Minor:
    """Major and minor version of a version's text, such as `4.1.4` or `4.0.1-vendor`.

    Raises:
        ConfigError: the text does not begin with two numbers.
    """
    found = _VERSION.match(version)
    if found is None:
        raise ConfigError(f"PySpark: found version {version!r}, allowed is one that begins with two numbers")
    return int(found[1]), int(found[2])


def bounds_streams(version: str) -> bool:
    """Whether a version of PySpark calls a stream in the way of `BOUNDED_STREAMS`.

    Raises:
        ConfigError: see `minor_of`.
    """
    return minor_of(version) >= BOUNDED_STREAMS


def require(ability: Ability, version: str) -> None:
    """Refuse what a version of PySpark does not have.

    Raises:
        ConfigError: names the version, those that are allowed, and what to use instead.
    """
    if minor_of(version) < ability.least:
        least = ".".join(map(str, ability.least))
        raise ConfigError(f"{ability.asked}: found PySpark {version}, allowed are {least} and newer: {ability.way_out}")
