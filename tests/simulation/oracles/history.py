"""What happened at the source, by key and by place in the log: the truth that everything else is compared with."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ots_tunnel.client.table_calls import batch_write_request
from tests.simulation.machine.process import EPOCH
from tests.simulation.service import SOURCE, TABLE, SimulatedService
from tests.support.row_changes import change_of

#: Cell versions are this plus the number of the change, in milliseconds.
VERSIONS_FROM_MS = int(EPOCH * 1000)


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the log: when it was committed (Unix seconds), and which change of which key it is."""

    committed: float
    key: str
    number: int
    position: int


class History:
    """The changes of the source table; changes of a key are numbered from 1 on.

    Args:
        end: Unix seconds after which no change is to be copied; None without an end.
    """

    def __init__(self, service: SimulatedService, end: float | None = None) -> None:
        self._service = service
        self.end = end
        #: Number of the last change of every key that is in the stream and not after the end.
        self.due: dict[str, int] = {}
        #: Number of the last change of every key.
        self.last: dict[str, int] = {}
        #: Number of the first change of a key that is in the stream.
        self.first_in_stream: dict[str, int] = {}
        #: Channel to its entries, in order.
        self.entries: dict[str, list[Place]] = defaultdict(list)
        self._places: dict[tuple[str, int], Place] = {}
        self._by_time: dict[tuple[str, int], Place] = {}

    def write(self, key: str) -> None:
        """Make the next change of a key, within the domain of docs/architecture.md rule 14."""
        number = self.last.get(key, 0) + 1
        self.last[key] = number
        table = self._service.emulator.instances[SOURCE].tables[TABLE]
        partition = table.log.locate((key.encode(),)) if table.log is not None else None
        request = batch_write_request(TABLE, [change_of(key, number, VERSIONS_FROM_MS)])
        answer = self._service.call(SOURCE, "BatchWriteRow", request)
        assert answer.tables[0].rows[0].is_ok, answer
        if partition is not None:
            self.first_in_stream.setdefault(key, number)
            position = partition.end - 1
            place = Place(partition.times_us[-1] / 1e6, key, number, position)
            self.entries[partition.id].append(place)
            if self.is_due(place):
                self.due[key] = number
            self._places[partition.id, position] = place
            self._by_time[partition.id, partition.times_us[-1]] = place

    def is_due(self, place: Place) -> bool:
        """Whether an entry is not after the end."""
        return self.end is None or place.committed <= self.end

    def place(self, channel: str, position: int) -> Place:
        """The entry at a position of a channel's log."""
        return self._places[channel, position]

    def place_at(self, channel: str, time_us: int) -> Place:
        """The entry of a channel's log that was committed at a time: no other one was."""
        return self._by_time[channel, time_us]
