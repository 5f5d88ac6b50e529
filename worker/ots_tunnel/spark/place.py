"""The table that options name, where its keys come from, and the client for it. For reading and writing.

A message names the option as the user writes it, never a secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ots_tunnel.endpoint import ENDPOINT_WORDS, INSTANCE_WORDS, check_place, is_endpoint
from ots_tunnel.errors import ConfigError

if TYPE_CHECKING:
    from ots_tunnel.client.sync_table import SyncTableClient

#: Options that name a place.
PLACE_OPTIONS: Final = ("endpoint", "instance", "table", "credentialsDirectory", "credentialsProvider")

#: Seconds in which a connection to the endpoint has to open while a query is planned; own choice. Tasks are patient: by
#: then the endpoint has answered, and a pause of the service must not fail the query.
REACH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """A table, and where the keys of its instance come from."""

    endpoint: str
    instance: str
    table: str
    credentials_directory: str
    credentials_provider: str

    @classmethod
    def parse(cls, given: Mapping[str, str], directory: str) -> Place:
        """Check the options that name a place.

        Args:
            given: values of options by their names in lower case.
            directory: default of `credentialsDirectory`.

        Raises:
            ConfigError: an option is missing or malformed; names it.
        """
        missing = [name for name in ("endpoint", "instance", "table") if not given.get(name)]
        if missing:
            raise ConfigError(f"option {missing[0]!r} is missing")
        _check(given["endpoint"], given["instance"])
        if given.get("credentialsprovider") and given.get("credentialsdirectory"):
            raise ConfigError("option 'credentialsProvider': found with 'credentialsDirectory', allowed is one of them")
        return cls(
            endpoint=given["endpoint"],
            instance=given["instance"],
            table=given["table"],
            credentials_directory=given.get("credentialsdirectory", directory),
            credentials_provider=given.get("credentialsprovider", ""),
        )

    def client(self) -> SyncTableClient:
        """A client whose credentials come from this process or machine.

        Raises:
            ConfigError: there are no credentials; names the option.
        """
        from ots_tunnel.client.sync_table import SyncTableClient
        from ots_tunnel.spark.reader.logins import credentials_of

        provider = credentials_of(self.credentials_directory, self.credentials_provider)
        return SyncTableClient(self.endpoint, self.instance, provider)

    def reachable_client(self) -> SyncTableClient:
        """The same for planning: an endpoint where nothing listens fails the query within `REACH_SECONDS`.

        Raises:
            ConfigError: no connection to the endpoint; names the option.
        """
        place = urlsplit(self.endpoint)
        try:
            _reach(place.hostname or "", place.port, is_secure=place.scheme == "https")
        except OSError as error:
            reason = str(error) or f"no answer within {REACH_SECONDS:.0f} s"
            raise ConfigError(f"option 'endpoint': found {self.endpoint!r}, no connection to it: {reason}") from error
        return self.client()


def known_options(options: Mapping[str, str], allowed: Sequence[str]) -> dict[str, str]:
    """Values of options by their names in lower case.

    Raises:
        ConfigError: an option is none of the allowed ones; names it and them.
    """
    given = {key.lower(): value for key, value in options.items()}
    unknown = sorted(set(given) - {name.lower() for name in allowed})
    if unknown:
        raise ConfigError(f"option {unknown[0]!r} is unknown, allowed are {', '.join(allowed)}")
    return given


def _reach(host: str, port: int | None, *, is_secure: bool) -> None:
    """Open a connection, and close it.

    Raises:
        OSError: it cannot be opened within `REACH_SECONDS`, or not by TLS, or the certificate is not trusted.
    """
    import ssl

    from ots_tunnel.transport.connecting import open_socket_blocking

    with open_socket_blocking(host, port or (443 if is_secure else 80), REACH_SECONDS) as connection:
        if is_secure:
            connection.settimeout(REACH_SECONDS)
            ssl.create_default_context().wrap_socket(connection, server_hostname=host).close()


def _check(endpoint: str, instance: str) -> None:
    try:
        check_place(endpoint, instance)
    except ConfigError:
        if is_endpoint(endpoint):
            raise ConfigError(f"option 'instance': found {instance!r}, allowed are {INSTANCE_WORDS}") from None
        # check_place's own rule: a password may be in the part before the host
        found = "a user name or password" if "@" in endpoint else repr(endpoint)
        raise ConfigError(f"option 'endpoint': found {found}, allowed is {ENDPOINT_WORDS}") from None
