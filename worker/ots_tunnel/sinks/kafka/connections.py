"""Producers of one topic, their login, and the errors that brokers report for them."""

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
from ots_tunnel.sinks.kafka.certificates import FileCertificates
from ots_tunnel.sinks.kafka.failures import Failure, Verdict, is_about_login, verdict
from ots_tunnel.sinks.kafka.login import FileLogin
from ots_tunnel.sinks.kafka.login_refusals import LoginRefusals
from ots_tunnel.sinks.kafka.producer import ReportingProducer
from ots_tunnel.sinks.kafka.reports import failure_of
from ots_tunnel.sinks.kafka.settings import producer_settings

logger = logging.getLogger(__name__)

#: Seconds that one request for the topic may take, and that all of them may take together: a cluster that starts, or
#: moves a partition, needs a few seconds until it answers.
CHECK_TIMEOUT = 1.0
CHECK_DEADLINE = 10.0
#: Seconds for which brokers may say that there is no such topic before that is believed: one that starts, or has not
#: heard of a new topic yet, says so, too.
UNKNOWN_SECONDS = 5.0
#: Why a producer is replaced whose certificates are no longer those of the file.
_NEW_CERTIFICATES = Failure("_SSL", "the file of certificates has changed", fatal=True)


class Connections:
    """Producers of one topic, made when they are needed.

    One producer sends all messages. A second one, whose requests hold a single message, sends those of a request that
    was refused as a whole, so that the message at fault is found, and those whose report is not believed (`places`).

    Args:
        deadline: D, seconds after which nothing of a write may be sent any more (docs/architecture.md rule 4).
        check_pause: seconds between two requests for the topic; called before each.
        clock: monotonic seconds.

    Raises:
        ConfigError: the CA file or the login cannot be read.
    """

    def __init__(
        self,
        config: KafkaSinkConfig,
        *,
        deadline: float,
        check_pause: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = config.topic
        self.where = f"topic {config.topic!r} at {','.join(config.bootstrap_servers)}"
        self._settings = producer_settings(config, deadline)
        self._login = FileLogin(config.sasl.directory) if config.sasl is not None else None
        if self._login is not None:
            self._login.read()
        self._certificates = FileCertificates(config.ca_file)
        self._check_pause = check_pause
        self._clock = clock
        self._producer: ReportingProducer | None = None
        self._single_producer: ReportingProducer | None = None
        #: The last error of the connections to each broker: they explain why none answers.
        self._connection_errors: dict[str, Failure] = {}
        self.login_refusals = LoginRefusals(clock)

    def __repr__(self) -> str:
        return f"Connections({self.where})"

    async def check_topic(self) -> None:
        """Ask for the topic until a broker knows it.

        Raises:
            SinkRejected: the topic does not exist, or its rights forbid to look.
            SinkError: no broker answers, or the topic has no leader.
        """
        give_up_at, unknown_until = self._clock() + CHECK_DEADLINE, None
        while True:
            producer = await self.ready()
            try:
                failure = await producer.topic_error(CHECK_TIMEOUT)
            except KafkaException as error:
                failure = failure_of(error.args[0])
            failure = self.login_refusals.last or producer.fatal or failure
            if failure is None:
                self._connection_errors.clear()
                return
            found, now = verdict(failure), self._clock()
            if found is not Verdict.CHECK_TOPIC:
                unknown_until = None
            elif unknown_until is None:
                unknown_until = now + UNKNOWN_SECONDS
            if found is Verdict.REJECTED or (unknown_until is not None and now > unknown_until):
                raise SinkRejected(failure.name, f"{self.where}: {failure.words}")
            if unknown_until is None and now > give_up_at:
                raise SinkError(f"{self.where}: {self._why_no_answer() or failure}")
            self.follow_certificates()
            await asyncio.sleep(self._check_pause())

    async def ready(self, *, alone: bool = False) -> ReportingProducer:
        """The producer for all messages, or the one for single messages; a new one after a fatal error.

        Raises:
            SinkRejected: the error would be the same with a new producer. SinkError: none can be made now.
        """
        self.check_usable()
        former = self._single_producer if alone else self._producer
        if former is not None and former.fatal is None:
            return former
        self.refresh_login(at_once=True)
        try:
            producer = ReportingProducer(self._current_settings(alone=alone), self._topic, self._take_error)
        except KafkaException as error:
            raise SinkError(f"{self.where}: {failure_of(error.args[0])}") from error
        if alone:
            self._single_producer = producer
        else:
            self._producer = producer
        if former is None:
            return producer
        await former.close()
        return await self.ready(alone=alone)  # the new one may have been replaced meanwhile

    def check_usable(self) -> None:
        """Return unless a producer broke in a way that a new one would, too.

        Raises:
            SinkRejected: it did.
        """
        for producer in (self._producer, self._single_producer):
            if producer is not None and producer.fatal is not None and verdict(producer.fatal) is Verdict.REJECTED:
                raise SinkRejected(producer.fatal.name, f"{self.where}: {producer.fatal.words}")

    def refresh_login(self, *, at_once: bool = False) -> None:
        """Use the login that the files hold, if it is a new one.

        Args:
            at_once: read the files even if that was done within the last second.
        """
        try:
            login = self._login.changed(at_once=at_once) if self._login is not None else None
        except ConfigError as error:  # a Secret that is being replaced; the previous login may still work
            extra = {"action": LogAction.LOGIN_UNREADABLE, "error": str(error), "topic": self._topic}
            logger.warning("the login cannot be read", extra=extra)
            return
        if login is None:
            return
        for producer in (self._producer, self._single_producer):
            if producer is not None:
                producer.log_in(login.username, login.password)
        self.login_refusals.login_changed()

    def follow_certificates(self) -> None:
        """Replace producers that fail, where the file of certificates has changed since they were made."""
        if self._certificates.have_changed():
            self._connection_errors.clear()
            for producer in (self._producer, self._single_producer):
                if producer is not None:
                    producer.retire(_NEW_CERTIFICATES)

    async def close(self) -> None:
        """Drop what was abandoned, and disconnect."""
        for producer in (self._producer, self._single_producer):
            if producer is not None:
                await producer.close()
        self._producer = self._single_producer = None

    def _current_settings(self, *, alone: bool) -> dict[str, Any]:
        settings = {**self._settings, "batch.num.messages": 1} if alone else dict(self._settings)
        if self._login is not None:
            login = self._login.last
            settings |= {"sasl.username": login.username, "sasl.password": login.password}
        return settings

    def _why_no_answer(self) -> Failure | None:
        """The error of the first broker by its name: the same one in every look, however their errors take turns."""
        return self._connection_errors[min(self._connection_errors)] if self._connection_errors else None

    def _take_error(self, failure: Failure) -> None:
        if failure.name != "_ALL_BROKERS_DOWN":  # sums up the errors before it, which give the reasons
            self._connection_errors[failure.broker] = failure
        if is_about_login(failure):
            self.refresh_login(at_once=True)
            self.login_refusals.add(failure)
        extra = {"action": LogAction.BROKER_TROUBLE, "error": str(failure), "topic": self._topic}
        logger.warning("the broker cannot be used", extra=extra)
