"""Places of messages in their topic, by which a report is believed.

Theory of operation. librdkafka reports a message as stored, without an error, also where no broker has told that it is:

- A broker has refused a request and taken the next one of the same producer: the reports of the refused one have no
  offset.
- A broker takes a request for a repetition, of which it knows no place (DUPLICATE_SEQUENCE_NUMBER): librdkafka counts
  its messages from -1 on, so the first report has no offset, and the others have 0, 1, 2 and so on.

So a report without an offset is in doubt, and behind it, for some time, so is each of the same partition whose offset
may be counted. The reports of a request come in their order, but two threads take them, so those of other requests may
be in between: their offsets are in doubt as well where they are as low. What is in doubt is sent again in a request of
its own, of which no offset can be counted. So it is believed then.

Example: a request of three messages is taken for a repetition. The reports have no offset, 0 and 1; all three are sent
again, and have 4711, 4712 and 4713.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from ots_tunnel.sinks.kafka.settings import QUEUE_MESSAGES

#: Seconds for which low offsets are in doubt: those of one request are reported at once.
DOUBTED_SECONDS: Final = 60.0
#: Of the time between two reports so much counts at most: a process that stands still takes none in the meantime, and
#: each of two threads may count it once.
COUNTED_SECONDS: Final = 20.0


class Places:
    """Judges the reports of one sink, on any thread.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_at = clock()
        #: Seconds of all looks at the clock, without those in which the process stood still.
        self._awake = 0.0
        #: By partition what `_awake` is when no offset of its reports can be counted any more.
        self._doubted: dict[int, float] = {}

    def __repr__(self) -> str:
        return f"Places({self._doubted})"

    def has_one(self, message: Any, *, alone: bool) -> bool:
        """Whether a message that is reported as stored has a place in its topic.

        Args:
            alone: its request held no other message.
        """
        offset = message.offset()
        if offset is None:
            self._doubted[message.partition()] = self._awake_until_now() + DOUBTED_SECONDS
            return False
        # no request has more messages than the queue
        if alone or offset >= QUEUE_MESSAGES or not self._doubted:
            return True
        return self._awake_until_now() >= self._doubted.get(message.partition(), 0.0)

    def _awake_until_now(self) -> float:
        now = self._clock()
        self._awake += min(now - self._looked_at, COUNTED_SECONDS)
        self._looked_at = now
        return self._awake
