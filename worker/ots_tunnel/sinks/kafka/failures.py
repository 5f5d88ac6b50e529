"""What a message that was not confirmed means; pure.

Names are librdkafka's: those of the protocol, and with a leading underscore those of the client itself.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message was not confirmed.

    Args:
        name: librdkafka's name of the code, such as ``MSG_SIZE_TOO_LARGE``.
        text: its explanation; never holds contents.
        fatal: the producer sends nothing any more.
        by_client: found before anything was sent.
    """

    name: str
    text: str
    fatal: bool = False
    by_client: bool = False


class Verdict(enum.Enum):
    """What to do about it."""

    AGAIN = "send it again"
    ALONE = "send it again in a request of its own"
    ASK = "ask whether the topic still exists, then send it again"
    REJECTED = "no repetition can help"


#: About this message or these rights; whatever is not listed passes.
_VERDICTS = {
    # A broker says these of a whole request, which may hold others.
    "MSG_SIZE_TOO_LARGE": Verdict.ALONE,
    "RECORD_LIST_TOO_LARGE": Verdict.ALONE,
    "INVALID_MSG_SIZE": Verdict.ALONE,
    "INVALID_RECORD": Verdict.ALONE,
    "INVALID_TIMESTAMP": Verdict.ALONE,
    # Brokers say so, too, while they learn of a topic or move it.
    "UNKNOWN_TOPIC_OR_PART": Verdict.ASK,
    "UNKNOWN_TOPIC_ID": Verdict.ASK,
    "_UNKNOWN_TOPIC": Verdict.ASK,
    "_UNKNOWN_PARTITION": Verdict.ASK,
    "INVALID_MSG": Verdict.AGAIN,  # damaged on the way
    "INVALID_REQUIRED_ACKS": Verdict.REJECTED,
    "POLICY_VIOLATION": Verdict.REJECTED,
    "TOPIC_EXCEPTION": Verdict.REJECTED,
    "UNSUPPORTED_COMPRESSION_TYPE": Verdict.REJECTED,
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": Verdict.REJECTED,
    "UNSUPPORTED_VERSION": Verdict.REJECTED,
    "TOPIC_AUTHORIZATION_FAILED": Verdict.REJECTED,
    "CLUSTER_AUTHORIZATION_FAILED": Verdict.REJECTED,
    "SASL_AUTHENTICATION_FAILED": Verdict.REJECTED,
    "UNSUPPORTED_SASL_MECHANISM": Verdict.REJECTED,
    "_AUTHENTICATION": Verdict.REJECTED,
    "_INVALID_ARG": Verdict.REJECTED,
    "_UNSUPPORTED_FEATURE": Verdict.REJECTED,
}


def verdict(failure: Failure, *, alone: bool = False) -> Verdict:
    """What to do about a message.

    Args:
        alone: its request held no other message.
    """
    found = _VERDICTS.get(failure.name, Verdict.AGAIN)
    if found is Verdict.ALONE and (alone or failure.by_client):
        return Verdict.REJECTED
    return found


_ABOUT_ONE_RECORD = frozenset(
    ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG_SIZE", "INVALID_RECORD", "INVALID_TIMESTAMP")
)


def is_about_one_record(failure: Failure) -> bool:
    """Whether other records may be taken still."""
    return failure.name in _ABOUT_ONE_RECORD


_ABOUT_LOGIN = frozenset(("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"))


def is_about_login(failure: Failure) -> bool:
    """Whether a broker refused who we say we are.

    librdkafka gives the same name to a broker that went away in between; its text then has an error of its own.
    """
    return failure.name in _ABOUT_LOGIN and "Local:" not in failure.text
