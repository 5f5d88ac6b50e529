"""What a call of the API server comes to where it fails, and what a failure says for certain."""

from __future__ import annotations

from ots_tunnel.errors import TunnelError
from ots_tunnel_operator.kube.kinds import Kind

#: HTTP statuses by which the API server refuses what it was sent, and not the moment: it refuses that again.
REFUSALS = frozenset({400, 403, 422})


class KubeError(TunnelError):
    """The API server refused a call or did not answer; `status` is 0 where no answer arrived."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


class KindMissing(KubeError):
    """The API server does not serve the kind (its definition was removed, or an API is not ready): nothing is known
    about its objects, which may well exist."""


class NameConflict(TunnelError):
    """An object with the required name exists but does not belong to the operator's object."""


def is_absent(error: KubeError, kind: Kind) -> bool:
    """Whether an error says for certain that an object does not exist."""
    return error.status == 404 and (kind.optional or not isinstance(error, KindMissing))
