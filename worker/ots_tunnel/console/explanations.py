"""Error messages for users: what failed, where, and what to do. Pure.

The service's code, message and request id stay in the text, because its support asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ots_tunnel.errors import (
    AuthFailed,
    Explained,
    LeaseTableNotFound,
    ObjectAlreadyExist,
    ObjectNotExist,
    PermissionDenied,
    PossibleGap,
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

if TYPE_CHECKING:
    from ots_tunnel.config import TunnelConfig


@dataclass(frozen=True, slots=True)
class Place:
    """The names that a message needs: instance, table, tunnel, and the settings they come from.

    Args:
        credentials: folder of the keys.
        table, tunnel: names; empty where the call has none.
        tunnel_id: empty where the tunnel is found by its name.
        settings: prefix of the settings in their document, such as `source.`; `--` for options.
        names: settings that have another name there.
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
        """The source of a worker's document."""
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
        """The instance and its endpoint."""
        return f"instance {self.instance!r} at {self.endpoint}"

    @property
    def what(self) -> str:
        """The tunnel, or the table if the call concerns no tunnel."""
        if not self.tunnel:
            return f"table {self.table!r}"
        by_id = f" with the id {self.tunnel_id!r}" if self.tunnel_id else ""
        return f"tunnel {self.tunnel!r} of table {self.table!r}{by_id}"

    def setting(self, name: str) -> str:
        """Full name of a setting in its document."""
        return f"{self.settings}{self.short_setting(name)}"

    def short_setting(self, name: str) -> str:
        """Name of a setting in its document, without the prefix."""
        return self.names.get(name, name)


@contextmanager
def explaining(place: Place, *, destination: bool = False) -> Iterator[None]:
    """Explain errors of the service that are raised inside the block.

    Args:
        destination: the call concerns the destination, so its errors count as those of the sink.

    Raises:
        Explained: replaces a ServiceError or TransportError.
    """
    try:
        yield
    except (ServiceError, TransportError) as error:
        with_explanation = Explained(explanation(error, place))
        if destination and isinstance(error, ServiceError):
            raise with_explanation from SinkRejected(error.code, error.message)
        raise with_explanation from error


def explanation(error: TunnelError, place: Place) -> str:
    """Text that names what failed, where, and what to do; the error's own text if there is nothing to add."""
    answer = _answer(error)
    match error:
        case WrongTunnel():
            field = place.setting("table" if isinstance(error, WrongTable) else "tunnelName")
            return f"{field}: {error}, in {place.where}: correct it, or {place.setting('tunnelId')}"
        case TunnelNotFound():
            return (
                f"there is no {place.what} in {place.where} ({answer}): it was deleted, or has another name; "
                f"`ots-tunnel tunnel list {place.table}` lists those that exist, `ots-tunnel tunnel create` creates one"
            )
        case TableNotFound() | ObjectNotExist():
            return _no_table(error, place)
        case AuthFailed():
            return (
                f"{place.where} does not accept the AccessKey in {place.credentials} ({answer}): correct "
                f"{place.short_setting('accessKeyId')} and {place.short_setting('accessKeySecret')} there, "
                f"{place.setting('instance')}, or the clock of this machine"
            )
        case PermissionDenied():
            return (
                f"the AccessKey in {place.credentials} may not use {place.what} in {place.where} ({answer}): "
                f"let its owner grant the access, or correct {place.setting('instance')}"
            )
        case TunnelExpired():
            return (
                f"{place.what} in {place.where} has expired ({answer}): changes that it did not deliver are lost; "
                "delete it and create it again as BaseAndStream, which delivers every row again"
            )
        case PossibleGap():
            return _gap(error, place)
        case ServiceError():
            return _refusal(error, place)
        case TransportError():
            return f"{place.where} does not answer: {answer or type(error).__name__}"
    return str(error)


def _refusal(error: ServiceError, place: Place) -> str:
    """The text of any other answer."""
    answer = _answer(error)
    if isinstance(error, ObjectAlreadyExist) and place.tunnel:
        return (
            f"{place.what} in {place.where} exists ({answer}): use it, or take another name; "
            "`ots-tunnel tunnel delete` deletes it with its checkpoints"
        )
    if _is_of_another_server(error):
        return (
            f"{place.where} does not answer as Tablestore does ({answer}): correct {place.setting('endpoint')}, or "
            "what is on the way there"
        )
    return f"{place.what} in {place.where}: {answer}"


def _is_of_another_server(error: ServiceError) -> bool:
    """Whether the answer has neither a code nor an id of a request, as of a web server (`protocol.http.rpc`)."""
    return error.message.startswith(f"HTTP {error.http_status}") and not error.request_id


def _no_table(error: TunnelError, place: Place) -> str:
    answer = _answer(error)
    if isinstance(error, LeaseTableNotFound):
        return (
            f"{place.where}: {answer}: no worker has created it yet, or it was deleted, and every checkpoint with it; "
            "a worker that starts creates it, and begins where its document says"
        )
    return f"there is no table {place.table!r} in {place.where} ({answer}): correct the table or the instance"


def _gap(error: PossibleGap, place: Place) -> str:
    way = "copy the table again"
    if place.tunnel:
        way = "delete the tunnel and create it again as BaseAndStream"
    return (
        f"{place.what} in {place.where}: {error}; to be sure of every row, {way}; {place.setting('onPossibleGap')} "
        "Continue goes on behind the gap"
    )


def _answer(error: TunnelError) -> str:
    if not isinstance(error, ServiceError):
        return str(error)
    request = f", request {error.request_id}" if error.request_id else ""
    return f"{error.code}: {error.message}{request}"
