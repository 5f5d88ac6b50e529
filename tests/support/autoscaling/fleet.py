"""A toy model of a fleet: channels with a backlog, workers of equal speed, hand-overs that pause a channel.

It is a model: the balance is even, a hand-over takes one to three heartbeats, no call fails, and the sink takes
whatever the workers write.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ots_tunnel_operator.autoscale.figures import Figures
from tests.support.autoscaling.loads import TICK

#: Rows per second of one worker.
SPEED = 1000.0
#: Seconds until a new pod is ready.
POD_START = 20


@dataclass
class Channel:
    """One channel: how many rows it has consumed, and whose it is."""

    share: float
    speed: float = float("inf")
    """Rows per second that it can carry, whatever its worker can."""
    consumed: float = 0.0
    oldest: int = 0
    """Tick of the oldest row that waits."""
    worker: int | None = None
    paused_until: int = 0


@dataclass
class Fleet:
    """The fleet over the ticks of one run."""

    chance: random.Random
    heartbeat: int
    workers: int
    channels: list[Channel] = field(default_factory=lambda: [Channel(1 / 16) for _ in range(16)])
    now: int = 0
    moves: int = 0
    busy: float = 0.0
    rate: float = 0.0

    def __post_init__(self) -> None:
        self.arrived = [0.0]
        self.alive = list(range(self.workers))
        self._next = self.workers
        self._starting: list[tuple[int, int]] = []
        for place, channel in enumerate(self.channels):
            channel.worker = self.alive[place % self.workers]

    def scale(self, workers: int) -> None:
        """Start or stop workers; those with the fewest channels are stopped first."""
        self.workers = workers
        while len(self.alive) + len(self._starting) < workers:
            self._starting.append((self.now + POD_START, self._next))
            self._next += 1
        while len(self.alive) + len(self._starting) > workers and self._starting:
            self._starting.pop()
        while len(self.alive) > workers:
            victim = min(self.alive, key=lambda worker: len(self._of(worker)))
            self.alive.remove(victim)
        self._balance()

    def tick(self, rows: float) -> None:
        """Rows arrive, and each worker shares its speed between the channels that have work."""
        self.arrived.append(self.arrived[-1] + rows)
        ready = [worker for time, worker in self._starting if time <= self.now]
        self._starting = [item for item in self._starting if item[0] > self.now]
        if ready:
            self.alive += ready
            self._balance()
        done = sum(self._work(worker) for worker in self.alive)
        self.now += TICK
        self.rate = done / TICK
        self.busy = done / (SPEED * TICK * len(self.alive))

    def figures(self) -> Figures:
        """What the operator sees."""
        moving = any(channel.paused_until > self.now for channel in self.channels)
        unsettled = "pods start" if self._starting else "channels move" if moving else ""
        return Figures(float(self.now), len(self.channels), self.lag, self.busy, self.rate, unsettled=unsettled)

    @property
    def lag(self) -> float:
        """Age of the oldest row that waits, over all channels."""
        return max(self._lag(channel) for channel in self.channels)

    def _lag(self, channel: Channel) -> float:
        last = len(self.arrived) - 1
        while channel.oldest < last and self.arrived[channel.oldest + 1] * channel.share <= channel.consumed + 1e-6:
            channel.oldest += 1
        return float((last - channel.oldest) * TICK)

    def _of(self, worker: int) -> list[Channel]:
        return [channel for channel in self.channels if channel.worker == worker]

    def _work(self, worker: int) -> float:
        left, done = SPEED * TICK, 0.0
        total = self.arrived[-1]
        open_ = [channel for channel in self._of(worker) if channel.paused_until <= self.now]
        waiting = sorted(
            (
                (min(total * channel.share - channel.consumed, channel.speed * TICK), place)
                for place, channel in enumerate(open_)
            )
        )
        for count, (backlog, place) in zip(range(len(waiting), 0, -1), waiting, strict=True):
            taken = min(backlog, left / count)
            open_[place].consumed += taken
            left -= taken
            done += taken
        return done

    def _balance(self) -> None:
        """Give every channel a worker, and each worker as many as any other, with as few moves as possible."""
        held = {worker: self._of(worker) for worker in self.alive}
        for channel in self.channels:
            if channel.worker not in held:
                self._move(channel, min(held, key=lambda worker: len(held[worker])), held)
        while True:
            fullest = max(held, key=lambda worker: len(held[worker]))
            emptiest = min(held, key=lambda worker: len(held[worker]))
            if len(held[fullest]) - len(held[emptiest]) < 2:
                return
            self._move(held[fullest].pop(), emptiest, held)

    def _move(self, channel: Channel, worker: int, held: dict[int, list[Channel]]) -> None:
        channel.worker = worker
        channel.paused_until = self.now + self.chance.randint(self.heartbeat, 3 * self.heartbeat)
        held[worker].append(channel)
        self.moves += 1
