"""Refusals of a sink that its owner can end without a change of the object: keys, rights, places, quotas. Pure.

A worker ends with the same exit code for all refusals (docs/operations.md, exit codes); the code of the sink, which its
termination message begins with, tells them apart. Any other refusal is one of records, or of settings of the object: it
comes back with every restart.
"""

from __future__ import annotations

from ots_tunnel.errors import ParameterInvalid, RowRejected, ServiceError, SinkRejected, WrongDestination
from ots_tunnel.protocol.service_codes import ERROR_CLASSES
from ots_tunnel_operator.sink_refusals import code_of

#: Codes of buckets and files, and of Kafka brokers, as the sinks have them.
_OF_PLACES = frozenset(
    {
        "DestinationIncompatible",
        "Denied",
        "NoSuchBucket",
        "OSError",
        "PermissionError",
        "FileExistsError",
        "NotADirectoryError",
        "IsADirectoryError",
        "BrokenPipe",
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_TOPIC_ID",
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "INVALID_REQUIRED_ACKS",
        "POLICY_VIOLATION",
        "TOPIC_EXCEPTION",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "UNSUPPORTED_VERSION",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "SASL_AUTHENTICATION_FAILED",
        "UNSUPPORTED_SASL_MECHANISM",
        "_AUTHENTICATION",
        "_INVALID_ARG",
        "_UNSUPPORTED_FEATURE",
    }
)
#: Statuses of a web service that a single event can cause; every other one is about the service.
_OF_EVENTS = frozenset({"HTTP 400", "HTTP 413", "HTTP 422"})
#: Begin of the message of a refusal.
_ERRORS = (SinkRejected.__name__, WrongDestination.__name__)


def refuses_records(message: str) -> bool:
    """Whether a termination message tells that a sink refused records; one that cannot be read does not."""
    code = code_of(message)
    if code is None or not message.startswith(_ERRORS):
        return False
    if code.startswith("HTTP "):
        return code in _OF_EVENTS
    # as the worker itself tells what is about one row: rights, a missing table and a quota concern all of them
    if code.startswith("OTS"):
        return issubclass(ERROR_CLASSES.get(code, ServiceError), (ParameterInvalid, RowRejected))
    return code not in _OF_PLACES
