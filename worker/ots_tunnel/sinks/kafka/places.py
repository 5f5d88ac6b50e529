"""Places of messages in their topic, by which a report is believed.

librdkafka reports a message as stored, without an error, also where no broker has told that it is:

- A broker has refused a request and taken the next one of the same producer: the reports of the refused one have no
  offset.
- A broker takes a request for a repetition, of which it knows no place (DUPLICATE_SEQUENCE_NUMBER): librdkafka counts
  its messages from -1 on, so the first report has no offset, and the others have 0, 1, 2 and so on.
"""

from __future__ import annotations

from typing import Any


class Places:
    """Judges the reports of one sink, in the order in which they come; on any thread."""

    def __init__(self) -> None:
        #: By partition the offset that the next message of a request without a place would have.
        self._counted: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Places({self._counted})"

    def has_one(self, message: Any) -> bool:
        """Whether a message that is reported as stored has a place in its topic."""
        offset = message.offset()
        if offset is None:
            self._counted[message.partition()] = 0
            return False
        # a report costs no call more as long as every place is told
        return not self._counted or self._is_told(message.partition(), offset)

    def _is_told(self, partition: int, offset: int) -> bool:
        if self._counted.get(partition) == offset:
            self._counted[partition] += 1
            return False
        self._counted.pop(partition, None)
        return True
