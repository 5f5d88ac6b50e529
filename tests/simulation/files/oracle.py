"""Oracle of published files: together they hold every record once, and those of a key in their order.

A record has taken effect when it is durable in a finished file (`machine.disk`); then `oracles.delivery` judges it as
any other write, with `checkpoint` among its rules. Here are those that only files have:

    torn     a file under its name is whole, and has as many records as its name says
    order    the names of a channel's files, and the records in them, are in the order of their commits
    ahead    when a file of a stream is finished, no other one has a record behind the stored checkpoint
    twice    once everything is copied, no record is in two files

Where somebody else has stored earlier checkpoints twice, records may be in two files, and files out of order: the file
of the first replay may hold what lies between the two checkpoints, and no name tells that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from tests.simulation.files.rows import Row, rows_of
from tests.simulation.oracles.delivery import Delivery, Violate
from tests.simulation.oracles.history import History
from tests.simulation.service import position_of
from tests.support.ledger import Written
from tests.support.row_changes import is_removal


class PublishedFiles:
    """Judges finished files.

    Args:
        now: seconds of the region.
        witness: receives what has taken effect.
    """

    def __init__(
        self,
        history: History,
        delivery: Delivery,
        violate: Violate,
        now: Callable[[], float],
        witness: Callable[[Written], None],
    ) -> None:
        self._history = history
        self._delivery = delivery
        self._violate = violate
        self._now = now
        self._witness = witness
        self._files: dict[Path, tuple[Row, ...]] = {}
        #: Key to the numbers of its changes in files, and how many files hold each.
        self._numbers: dict[str, Counter[int]] = defaultdict(Counter)
        self._existing: dict[str, Counter[int]] = defaultdict(Counter)
        self.published = 0
        #: Key of the last record of the file that was finished last.
        self.last_key = ""

    def finished(self, path: Path, who: str) -> None:
        """A file was finished by a process."""
        rows = self._take(path)
        if rows is not None:
            self._judge_ahead(path)
            self.published += 1
            self.last_key = rows[-1].change[0] if rows else ""
            self._witness(Written(self._now(), who, self._now(), tuple(row.change for row in rows)))

    def back(self, path: Path) -> None:
        """A loss of power has brought a file back."""
        self._take(path)

    def gone(self, path: Path) -> None:
        """A file was removed or replaced: its records have to come again."""
        rows = self._files.pop(path, ())
        for row in rows:
            numbers, number = self._place(row)
            numbers[number] -= 1
        for key in dict.fromkeys(row.change[0] for row in rows):
            self._delivery.withdraw(key, self._reach(key))

    def unfit(self) -> list[str]:
        """What is not as it has to be once everything is copied."""
        unfit = []
        rewound = {row.change[0] for rows in self._files.values() for row in rows if self._is_rewound(row)}
        for key in (key for key in self._history.last if key not in rewound):
            for kept in (self._numbers[key], self._existing[key]):
                twice = [number for number, count in kept.items() if count > 1]
                unfit += [f"{key}: {number} is in two files" for number in twice]
            if len(+self._existing[key]) > 1:
                unfit.append(f"{key}: two files hold it as an existing row")
        return unfit + self._missing() + self._disorder()

    def _is_rewound(self, row: Row) -> bool:
        """Whether somebody else has stored checkpoints of a record's channel more than once."""
        return self._delivery.overruled[row.channel] > 1

    def _missing(self) -> list[str]:
        history = self._history
        missing = [
            f"{place.key}: {place.number} is in no file"
            for places in history.entries.values()
            for place in places
            if history.is_due(place)
            and not self._numbers[place.key][place.number]
            and not self._delivery.is_left_out(place.key, place.number)
        ]
        return missing + [
            f"{key}: the existing row is in no file"
            for key, last in history.last.items()
            if key not in history.first_in_stream
            and not is_removal(last)
            and not self._existing[key][last]
            and not self._delivery.is_left_out(key, None)
        ]

    def _disorder(self) -> list[str]:
        """Channels whose files are not in order."""
        folders: dict[Path, list[Path]] = defaultdict(list)
        for path in self._files:
            folders[path.parent].append(path)
        found = []
        for folder, paths in folders.items():
            times = [
                row.time_us or 0 for path in sorted(paths) for row in self._files[path] if not self._is_rewound(row)
            ]
            if any(later < earlier for earlier, later in pairwise(times)):
                found.append(f"the files of {folder.name[:8]} are not in order")
        return found

    def _judge_ahead(self, path: Path) -> None:
        """A file has been published: the checkpoint behind the one before it is stored."""
        ahead = sorted(other.name for other in self._files if other.parent == path.parent and self._is_ahead(other))
        if len(ahead) > 1:
            self._violate("ahead", f"{', '.join(ahead)} in {path.parent.name[:8]} are ahead of the checkpoint")

    def _is_ahead(self, path: Path) -> bool:
        last = self._files[path][-1] if self._files[path] else None
        if last is None or last.time_us is None or last.channel in self._delivery.overruled:
            return False
        token = self._delivery.stored(last.channel)
        if not token or (position := position_of(token)) is None:
            return False
        return self._history.place_at(last.channel, last.time_us).position >= position

    def _take(self, path: Path) -> tuple[Row, ...] | None:
        try:
            rows = rows_of(path)
        except (ValueError, OSError, KeyError) as error:
            self._violate("torn", f"{path.name} in {path.parent.name[:8]} is not whole: {error}")
            return None
        if len(rows) != int(path.name.split(".")[1]):
            self._violate("torn", f"{path.name} in {path.parent.name[:8]} has {len(rows)} records")
        self._files[path] = rows
        for row in rows:
            numbers, number = self._place(row)
            numbers[number] += 1
        return rows

    def _place(self, row: Row) -> tuple[Counter[int], int]:
        key, _, number = row.change
        if row.time_us is None:
            return self._existing[key], number
        return self._numbers[key], self._history.place_at(row.channel, row.time_us).number

    def _reach(self, key: str) -> int:
        """The last number of a key before the first one that is in no file though it is not left out."""
        numbers, first = self._numbers[key], self._history.first_in_stream.get(key, 0)
        existing = max((number for number, count in self._existing[key].items() if count > 0), default=0)
        start = reach = max(existing, first - 1)
        while numbers[reach + 1] or self._delivery.is_left_out(key, reach + 1):
            reach += 1
        return reach if reach > start else existing
