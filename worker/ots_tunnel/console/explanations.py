"""Why the service does not give a tunnel, for a person: what, where, and the way out; pure.

The service's own words are kept, since its support asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ots_tunnel.config import TunnelConfig
from ots_tunnel.errors import (
    AuthFailed,
    Explained,
    ObjectNotExist,
    PermissionDenied,
    ServiceError,
    SinkRejected,
    TableNotFound,
    TransportError,
    TunnelError,
    TunnelExpired,
    TunnelNotFound,
    WrongTable,
    WrongTunnel,
)


@dataclass(frozen=True, slots=True)
class Place:
    """What was asked for, and where.

    Args:
        credentials: folder of the keys.
        table, tunnel: names; empty where the call has none.
        tunnel_id: empty where the tunnel is looked up by its name.
        settings: what stands before the names of settings in the document, such as `source.`; `--` for options.
        names: settings that are called otherwise there.
    """

    endpoint: str
    instance: str
    credentials: str
    table: str = ""
    tunnel: str = ""
    tunnel_id: str = ""
    settings: str = "--"
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_source(cls, source: TunnelConfig) -> Place:
        """What a worker's document asks for."""
        return cls(
            source.endpoint,
            source.instance,
            str(source.credentials.directory),
            source.table,
            source.tunnel_name,
            source.tunnel_id,
            "source.",
        )

    @property
    def where(self) -> str:
        """The instance."""
        return f"instance {self.instance!r} at {self.endpoint}"

    @property
    def what(self) -> str:
        """The tunnel, or the table where none is asked for."""
        if not self.tunnel:
            return f"table {self.table!r}"
        by_id = f" with the id {self.tunnel_id!r}" if self.tunnel_id else ""
        return f"tunnel {self.tunnel!r} of table {self.table!r}{by_id}"

    def setting(self, name: str) -> str:
        """What a setting is called here."""
        return f"{self.settings}{self.called(name)}"

    def called(self, name: str) -> str:
        """The same without what stands before it."""
        return self.names.get(name, name)


@contextmanager
def explaining(place: Place, *, destination: bool = False) -> Iterator[None]:
    """Put what the service refuses inside the block, or that it does not answer, into words.

    Args:
        destination: who refuses here is whoever keeps the destination.

    Raises:
        Explained: instead of a ServiceError or TransportError.
    """
    try:
        yield
    except (ServiceError, TransportError) as error:
        told = Explained(explained(error, place))
        if destination and isinstance(error, ServiceError):
            raise told from SinkRejected(error.code, error.message)
        raise told from error


def explained(error: TunnelError, place: Place) -> str:
    """The error in words that name what, where and the way out; its own words where there is no more to say."""
    answer = _answer(error)
    match error:
        case WrongTunnel():
            field = place.setting("table" if isinstance(error, WrongTable) else "tunnelName")
            return f"{field}: {error}, in {place.where}: correct it, or {place.setting('tunnelId')}"
        case TunnelNotFound():
            return (
                f"there is no {place.what} in {place.where} ({answer}): it was deleted, or is called otherwise; "
                f"`ots-tunnel tunnel list {place.table}` shows what there is, `ots-tunnel tunnel create` makes one"
            )
        case TableNotFound() | ObjectNotExist():
            return f"there is no table {place.table!r} in {place.where} ({answer}): correct the table or the instance"
        case AuthFailed():
            return (
                f"{place.where} does not accept the AccessKey in {place.credentials} ({answer}): correct "
                f"{place.called('accessKeyId')} and {place.called('accessKeySecret')} there, "
                f"{place.setting('instance')}, or the clock of this machine"
            )
        case PermissionDenied():
            return (
                f"the AccessKey in {place.credentials} may not use {place.what} in {place.where} ({answer}): "
                f"let its owner grant the access, or correct {place.setting('instance')}"
            )
        case TunnelExpired():
            return (
                f"{place.what} in {place.where} is expired ({answer}): changes it has not delivered are gone; delete "
                "it and create it anew as BaseAndStream, which delivers every row again"
            )
        case ServiceError():
            return f"{place.what} in {place.where}: {answer}"
        case TransportError():
            return f"{place.where} does not answer: {answer or type(error).__name__}"
    return str(error)


def _answer(error: TunnelError) -> str:
    if not isinstance(error, ServiceError):
        return str(error)
    request = f", request {error.request_id}" if error.request_id else ""
    return f"{error.code}: {error.message}{request}"
