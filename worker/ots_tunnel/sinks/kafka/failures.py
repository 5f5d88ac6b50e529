"""Failures of messages, and what to do about each; pure.

Names are librdkafka's: those of the protocol, and with a leading underscore those of the client itself.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

#: librdkafka's note at the end of a text, which differs each time, such as
#: `(after 3ms in state CONNECT, 5 identical error(s) suppressed)`.
_ELAPSED = re.compile(r" \(after \d+ms.*\)")
#: The broker that a text is about, behind the login's protocol where there is one: `sasl_ssl://b1:9092/bootstrap: ...`.
_BROKER = re.compile(r"(?:\w+://)?(\S+:\d+/\w+): ")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a message was not confirmed.

    Args:
        name: librdkafka's name of the code, such as ``MSG_SIZE_TOO_LARGE``.
        text: its explanation, as librdkafka gives it; never holds contents.
        fatal: the producer sends nothing more.
        by_client: found before anything was sent.
    """

    name: str
    text: str
    fatal: bool = False
    by_client: bool = False

    @property
    def words(self) -> str:
        """The text without elapsed times: equal for failures of one kind, so that what shows it stays as it is."""
        return _ELAPSED.sub("", self.text)

    @property
    def broker(self) -> str:
        """The broker that the text begins with, such as `b1:9092/1`; empty where it names none."""
        found = _BROKER.match(self.text)
        return found[1] if found else ""

    def __str__(self) -> str:
        """Name and words."""
        return f"{self.name}: {self.words}"


#: See `places`.
NO_PLACE = Failure("NO_OFFSET", "reported as stored, without its place in the topic")


class Verdict(enum.Enum):
    """What to do about a failed message."""

    AGAIN = "send it again"
    ALONE = "send it again, alone in a request"
    CHECK_TOPIC = "check that the topic still exists, then send it again"
    REJECTED = "do not send it again: every try would fail"


#: Failures of one message, of the topic or of its rights; any other passes by itself.
VERDICTS = {
    # A broker reports these for a whole request, which may hold other messages.
    "MSG_SIZE_TOO_LARGE": Verdict.ALONE,
    "RECORD_LIST_TOO_LARGE": Verdict.ALONE,
    "INVALID_MSG_SIZE": Verdict.ALONE,
    "INVALID_RECORD": Verdict.ALONE,
    "INVALID_TIMESTAMP": Verdict.ALONE,
    # Brokers also report these while a topic is created or moved.
    "UNKNOWN_TOPIC_OR_PART": Verdict.CHECK_TOPIC,
    "UNKNOWN_TOPIC_ID": Verdict.CHECK_TOPIC,
    "_UNKNOWN_TOPIC": Verdict.CHECK_TOPIC,
    "_UNKNOWN_PARTITION": Verdict.CHECK_TOPIC,
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
    """What to do about a failed message.

    Args:
        alone: its request held no other message.
    """
    found = VERDICTS.get(failure.name, Verdict.AGAIN)
    if found is Verdict.ALONE and (alone or failure.by_client):
        return Verdict.REJECTED
    return found


def is_in_doubt(failure: Failure) -> bool:
    """Whether a broker may still store the message.

    A repetition by the same producer cannot be overtaken by it, because brokers know its id, epoch and sequence. But
    after a failure the producer may have another id, which nothing compares with the former one. So only a failure that
    tells that the message was refused, or was never sent, leaves no doubt.
    """
    return not failure.by_client and verdict(failure) is Verdict.AGAIN


_ABOUT_ONE_RECORD = frozenset(
    ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_MSG_SIZE", "INVALID_RECORD", "INVALID_TIMESTAMP")
)


def is_about_one_record(failure: Failure) -> bool:
    """Whether other records may still be accepted."""
    return failure.name in _ABOUT_ONE_RECORD


_ABOUT_LOGIN = frozenset(("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"))


def is_about_login(failure: Failure) -> bool:
    """Whether a broker refused the login.

    librdkafka gives the same name to a broker that disconnects during the login; its text then holds `Local:` and the
    client's own error.
    """
    return failure.name in _ABOUT_LOGIN and "Local:" not in failure.text
