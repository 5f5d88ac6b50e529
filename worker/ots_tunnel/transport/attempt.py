"""How far a request got, and the error that follows from it; for both transports over sockets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ots_tunnel.errors import ConnectError, ConnectionLost, ReadTimeout


@dataclass(slots=True)
class Attempt:
    """One try of a request."""

    before_send: Callable[[], None] | None
    #: Whether bytes may have left; if not, the request was certainly not executed.
    started: bool = False
    #: What `before_send` raised.
    refusal: BaseException | None = None

    def ask(self) -> None:
        """Call `before_send`, right before bytes leave."""
        if self.before_send is not None:
            try:
                self.before_send()
            except BaseException as refusal:
                self.refusal = refusal
                raise
        self.started = True


def translate(error: BaseException, endpoint: str, *, started: bool) -> ConnectError | ReadTimeout | ConnectionLost:
    """The package's error for an error of the connection; `started`: whether bytes may have left."""
    reason = str(error) or type(error).__name__
    if not started:
        return ConnectError(f"no connection to {endpoint}: {reason}")
    if isinstance(error, TimeoutError):
        return ReadTimeout(f"no complete answer from {endpoint} in time")
    return ConnectionLost(f"connection to {endpoint} broke: {reason}")
