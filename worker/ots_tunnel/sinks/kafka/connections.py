"""The connections to the brokers of one topic: its producers, who we say we are, and what the brokers say of that."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

from ots_tunnel.config import KafkaSinkConfig
from ots_tunnel.errors import ConfigError, SinkError, SinkRejected
from ots_tunnel.log_actions import LogAction
from ots_tunnel.sinks.kafka.failures import Failure, Verdict, is_about_login, verdict
from ots_tunnel.sinks.kafka.login import FileLogin
from ots_tunnel.sinks.kafka.producer import ReportingProducer, failure_of
from ots_tunnel.sinks.kafka.settings import producer_settings

logger = logging.getLogger(__name__)

#: Seconds one question about the topic may take, all of them together, and the pause between two.
ASK_TIMEOUT = 1.0
ASK_DEADLINE = 10.0
#: Seconds between two warnings of the same kind.
WARNING_PAUSE = 60.0


class Connections:
    """Producers of one topic, made when they are needed.

    Args:
        deadline: D, seconds after which nothing of a write may be sent any more (docs/architecture.md rule 4).
        ask_pause: seconds between two questions about the topic, asked before each.
        clock: monotonic seconds.

    Raises:
        ConfigError: the CA file or the login cannot be read.
    """

    def __init__(
        self,
        config: KafkaSinkConfig,
        *,
        deadline: float,
        ask_pause: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = config.topic
        self.where = f"topic {config.topic!r} at {','.join(config.bootstrap_servers)}"
        self._settings = producer_settings(config, deadline)
        self._login = FileLogin(config.sasl.directory) if config.sasl is not None else None
        if self._login is not None:
            self._login.read()
        self._ask_pause = ask_pause
        self._clock = clock
        self._producer: ReportingProducer | None = None
        self._lonely: ReportingProducer | None = None
        #: What the client said last of its connections, which explains why nothing else is to be had.
        self._trouble: Failure | None = None
        #: What the brokers said of our login since a message was confirmed.
        self.turned_away: Failure | None = None
        self._warned: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"Connections({self.where})"

    async def ask(self) -> None:
        """Ask for the topic until a broker knows it.

        Raises:
            SinkRejected: it does not exist, or we may not look.
            SinkError: no broker answers, or the topic has no leader.
        """
        give_up_at = self._clock() + ASK_DEADLINE
        while True:
            producer = await self.ready()
            try:
                failure = await producer.topic_error(ASK_TIMEOUT)
            except KafkaException as error:
                failure = failure_of(error.args[0])
            failure = self.turned_away or producer.fatal or failure
            if failure is None:
                return
            if verdict(failure) in (Verdict.REJECTED, Verdict.ASK):
                raise SinkRejected(failure.name, f"{self.where}: {failure.text}")
            if self._clock() > give_up_at:
                reason = self._trouble or failure
                raise SinkError(f"{self.where}: {reason.name}: {reason.text}")
            await asyncio.sleep(self._ask_pause())

    async def ready(self, *, alone: bool = False) -> ReportingProducer:
        """The producer of all messages, or the one whose requests hold one message; a new one after a fatal error.

        Raises:
            SinkRejected: no other producer could do better.
        """
        former = self._lonely if alone else self._producer
        if former is not None and former.fatal is None:
            return former
        if former is not None and former.fatal is not None and verdict(former.fatal) is Verdict.REJECTED:
            raise SinkRejected(former.fatal.name, f"{self.where}: {former.fatal.text}")
        producer = ReportingProducer(self._current_settings(alone=alone), self._topic, self._troubled)
        if alone:
            self._lonely = producer
        else:
            self._producer = producer
        if former is not None:
            await former.close()
        return producer

    def refresh_login(self) -> bool:
        """Use the login that the files hold now; whether it is a new one."""
        try:
            login = self._login.changed() if self._login is not None else None
        except ConfigError as error:  # a Secret that is being replaced; the former login may serve still
            self.warn("the login cannot be read", Failure("ConfigError", str(error)), action=LogAction.LOGIN_UNREADABLE)
            return False
        if login is None:
            return False
        for producer in (self._producer, self._lonely):
            if producer is not None:
                producer.log_in(login.username, login.password)
        self.turned_away = None
        return True

    async def close(self) -> None:
        """Drop what was abandoned, and disconnect."""
        for producer in (self._producer, self._lonely):
            if producer is not None:
                await producer.close()
        self._producer = self._lonely = None

    def warn(self, text: str, failure: Failure, *, action: LogAction, **more: object) -> None:
        """Log a failure, at most once in `WARNING_PAUSE` for each name."""
        now = self._clock()
        if now - self._warned.get(failure.name, float("-inf")) < WARNING_PAUSE:
            return
        self._warned[failure.name] = now
        extra = {"action": action, "error": f"{failure.name}: {failure.text}", "topic": self._topic, **more}
        logger.warning(text, extra=extra)

    def _current_settings(self, *, alone: bool) -> dict[str, Any]:
        settings = {**self._settings, "batch.num.messages": 1} if alone else dict(self._settings)
        if self._login is not None:
            login = self._login.read()
            settings |= {"sasl.username": login.username, "sasl.password": login.password}
        return settings

    def _troubled(self, failure: Failure) -> None:
        if failure.name != "_ALL_BROKERS_DOWN":  # as the others have said, and why
            self._trouble = failure
        if is_about_login(failure) and not self.refresh_login():
            self.turned_away = failure
        self.warn("the broker cannot be used", failure, action=LogAction.BROKER_TROUBLE)
