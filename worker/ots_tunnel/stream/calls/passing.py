"""Whether a call that has failed may succeed later, without anybody's help.

Theory of operation. An error of the service that says what is wrong with the call stays. Any other one may pass: an
answer that is not the service's, such as a load balancer's page, and keys that are exchanged at this moment. A worker
of a tunnel makes the same difference for its heartbeats.
"""

from __future__ import annotations

from ots_tunnel.errors import (
    CodecError,
    ObjectNotExist,
    ParameterInvalid,
    PermissionDenied,
    ServiceError,
    TransportError,
    TunnelError,
    TunnelExpired,
)


def may_pass(error: TunnelError) -> bool:
    """Whether the same call may succeed in a later round."""
    match error:
        case ParameterInvalid() | TunnelExpired() | PermissionDenied() | ObjectNotExist():
            return False
        case TransportError() | ServiceError() | CodecError():
            return True
        case _:
            return error.retryable
