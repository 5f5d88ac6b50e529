"""An answer of the API server that is an error."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """Status code, reason and message of a refused request."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": self.status,
            "reason": self.reason,
            "message": self.message,
        }


#: Reason of a kind that is not served. The real one is NotFound, too, and lacks the name of an object.
NOT_SERVED = "KindNotFound"


_REASONS = {403: "Forbidden", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


def injected(status: int) -> Refusal:
    """A fault of the simulation with this status."""
    return Refusal(status, _REASONS[status], "a fault of the simulation")


def conflict(message: str) -> Refusal:
    """409: the object is another one, or has another version, than the request says."""
    return Refusal(409, "Conflict", message)


def not_found(message: str) -> Refusal:
    """404: there is no such object."""
    return Refusal(404, "NotFound", message)


def invalid(message: str) -> Refusal:
    """422: the object does not fit its schema."""
    return Refusal(422, "Invalid", message)


def not_served(kind: str) -> Refusal:
    """404: the API server knows no such kind now; unlike `not_found` it names no object."""
    return Refusal(404, NOT_SERVED, f"the server could not find the requested resource {kind}")
