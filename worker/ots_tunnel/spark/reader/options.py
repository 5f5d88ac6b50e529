"""Checked options of a query, and the client that they describe.

`source` describes every option. A message names the option as the user writes it, never a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ots_tunnel.endpoint import ENDPOINT_WORDS, INSTANCE_WORDS, check_place, is_endpoint
from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.reader.ddl import parse_columns, parse_names
from ots_tunnel.spark.reader.key_filters import Condition
from ots_tunnel.spark.reader.where import parse_where

if TYPE_CHECKING:
    from ots_tunnel.client.table import SyncTableClient

#: Unit and minimum of the service (docs/data-plane.md 2.7).
DEFAULT_SPLIT_BYTES = 104_857_600
MIN_SPLIT_BYTES = 1_048_576
DEFAULT_DIRECTORY = "/etc/ots/secrets/source"
#: Rows that tell the columns of a query without `columns`; own choice.
DEFAULT_SAMPLE_ROWS = 1_000
#: First version that no cell can have (docs/data-plane.md 2.2).
END_OF_VERSIONS = (2**63 - 1) // 1_000
#: Largest numbers of a request: of its fields, and of the one for the versions of a cell.
MAX_NUMBER, MAX_VERSIONS = 2**63 - 1, 2**31 - 1
_OPTIONS = (
    "endpoint",
    "instance",
    "table",
    "credentialsDirectory",
    "credentialsProvider",
    "columns",
    "where",
    "pushFilters",
    "sampleRows",
    "onTypeConflict",
    "splitBytes",
    "rowsPerSecond",
    "startVersion",
    "endVersion",
    "maxVersions",
    "mode",
    "splitsDirectory",
)

#: Seconds in which a connection to the endpoint has to open while a query is planned; own choice. Tasks are patient: by
#: then the endpoint has answered, and a pause of the service must not fail the query.
REACH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Checked options of a query."""

    endpoint: str
    instance: str
    table: str
    credentials_directory: str
    credentials_provider: str
    raw: bool
    columns: tuple[tuple[str, str], ...] | None
    """Attribute columns as name and type, in raw mode without types; None without the option."""
    where: tuple[Condition, ...]
    """Conditions on the key that every row of the query fulfils."""
    push_filters: bool
    sample_rows: int
    on_conflict: str
    """What becomes of a value of another type than its column: `error`, `string` or `null`."""
    split_bytes: int
    rows_per_second: int
    versions: tuple[int, int] | None
    """Versions of cells in milliseconds, the second exclusive; None for all."""
    max_versions: int
    """Most versions of a cell in raw mode; 0 for all that the table keeps."""
    splits_directory: str
    """For the snapshot's driver: a folder with the frozen list and the splits to read (`pending`)."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Check the options of a query.

        Raises:
            ConfigError: an option is missing, unknown or out of range; names it.
        """
        given = {key.lower(): value for key, value in options.items()}
        unknown = sorted(set(given) - {name.lower() for name in _OPTIONS})
        if unknown:
            raise ConfigError(f"option {unknown[0]!r} is unknown, allowed are {', '.join(_OPTIONS[:-1])}")
        missing = [name for name in ("endpoint", "instance", "table") if not given.get(name)]
        if missing:
            raise ConfigError(f"option {missing[0]!r} is missing")
        check_options(given["endpoint"], given["instance"])
        raw = choice(given, "mode", ("typed", "raw")) == "raw"
        columns = given.get("columns")
        if given.get("credentialsprovider") and given.get("credentialsdirectory"):
            raise ConfigError("option 'credentialsProvider': found with 'credentialsDirectory', allowed is one of them")
        if not raw and given.get("maxversions", "1") != "1":
            raise ConfigError(f"option 'maxVersions': found {given['maxversions']!r}, allowed is 1 in mode typed")
        return cls(
            endpoint=given["endpoint"],
            instance=given["instance"],
            table=given["table"],
            credentials_directory=given.get("credentialsdirectory", DEFAULT_DIRECTORY),
            credentials_provider=given.get("credentialsprovider", ""),
            raw=raw,
            columns=None if columns is None else (parse_names(columns) if raw else parse_columns(columns)),
            where=parse_where(given.get("where", "")),
            push_filters=choice(given, "pushFilters", ("false", "true")) == "true",
            sample_rows=number(given, "sampleRows", DEFAULT_SAMPLE_ROWS, 0),
            on_conflict=choice(given, "onTypeConflict", ("error", "string", "null")),
            split_bytes=number(given, "splitBytes", DEFAULT_SPLIT_BYTES, MIN_SPLIT_BYTES),
            rows_per_second=number(given, "rowsPerSecond", 0, 0),
            versions=version_range(given),
            max_versions=number(given, "maxVersions", 0, 1, MAX_VERSIONS) if "maxversions" in given else 0,
            splits_directory=given.get("splitsdirectory", ""),
        )

    def client(self) -> SyncTableClient:
        """A client whose credentials come from this process or machine.

        Raises:
            ConfigError: there are no credentials; names the option.
        """
        from ots_tunnel.client.table import SyncTableClient
        from ots_tunnel.spark.reader.logins import credentials_of

        provider = credentials_of(self.credentials_directory, self.credentials_provider)
        return SyncTableClient(self.endpoint, self.instance, provider)

    def reachable_client(self) -> SyncTableClient:
        """The same for planning: an endpoint where nothing listens fails the query within `REACH_SECONDS`.

        Raises:
            ConfigError: no connection to the endpoint; names the option.
        """
        from ots_tunnel.transport.connecting import open_socket_blocking

        place = urlsplit(self.endpoint)
        port = place.port or (443 if place.scheme == "https" else 80)
        try:
            open_socket_blocking(place.hostname or "", port, REACH_SECONDS).close()
        except OSError as error:
            reason = str(error) or f"no answer within {REACH_SECONDS:.0f} s"
            raise ConfigError(f"option 'endpoint': found {self.endpoint!r}, no connection to it: {reason}") from error
        return self.client()


def check_options(endpoint: str, instance: str) -> None:
    """Refuse a malformed place.

    Raises:
        ConfigError: names the option.
    """
    try:
        check_place(endpoint, instance)
    except ConfigError:
        if is_endpoint(endpoint):
            raise ConfigError(f"option 'instance': found {instance!r}, allowed are {INSTANCE_WORDS}") from None
        # check_place's own rule: a password may be in the part before the host
        found = "a user name or password" if "@" in endpoint else repr(endpoint)
        raise ConfigError(f"option 'endpoint': found {found}, allowed is {ENDPOINT_WORDS}") from None


def choice(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """An option that is one of some words; the first is the default.

    Raises:
        ConfigError: another word; names the option.
    """
    found = given.get(name.lower(), allowed[0]).lower()
    if found not in allowed:
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {', '.join(allowed[:-1])} and {allowed[-1]}")
    return found


def number(given: Mapping[str, str], name: str, default: int, least: int, most: int = MAX_NUMBER) -> int:
    """An option that is a whole number.

    Raises:
        ConfigError: not a number, too small or too large; names the option.
    """
    found = given.get(name.lower(), str(default))
    # isascii: isdecimal is true for digits of other scripts, too
    if not (found.isascii() and found.isdecimal()):
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {least} and more")
    digits = found.lstrip("0") or "0"
    # the length first: int() refuses thousands of digits
    if len(digits) > len(str(most)) or int(digits) > most:
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {least} to {most}")
    if int(digits) < least:
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {least} and more")
    return int(digits)


def version_range(given: Mapping[str, str]) -> tuple[int, int] | None:
    """The versions between the options `startVersion` and `endVersion`; None where neither is given.

    Raises:
        ConfigError: not a number, or an empty range; names the option.
    """
    if "startversion" not in given and "endversion" not in given:
        return None
    start = number(given, "startVersion", 0, 0, END_OF_VERSIONS - 1)
    return start, number(given, "endVersion", END_OF_VERSIONS, start + 1, END_OF_VERSIONS)
