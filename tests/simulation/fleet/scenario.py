"""What a seed of a fleet stands for: an object, a load, what users do to it, and faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ots_emulator.settings import AfterRetention
from tests.simulation.fleet.acts import APART, KINDS, Act
from tests.simulation.fleet.plots import PLOTS, draw_acts, draw_plot
from tests.simulation.replayable import Replayable

#: LATEST_AT_OPEN is drawn apart from these, because only few stories come to it.
AFTER_RETENTION = (AfterRetention.EXPIRE, AfterRetention.OLDEST, AfterRetention.LATEST)


@dataclass(frozen=True, slots=True)
class FleetScenario(Replayable):
    """One story's setting.

    Args:
        plot: what it revolves around (`plots`).
        tunnel: `Stream` or `BaseAndStream`.
        end_after: seconds after which the tunnel ends; 0 means never.
        after_retention: what the service does with a channel whose next records are gone (`ots_emulator.settings`).
        length: seconds in which writers write, users act and faults happen.
    """

    happenings: ClassVar[str] = "acts"
    happening: ClassVar[type] = Act
    prefix: ClassVar[str] = "fleet:"

    plot: str = "everything"
    tunnel: str = "Stream"
    replicas: int = 2
    partitions: int = 2
    keys: int = 12
    interval: int = 10
    timeout: int = 60
    end_after: float = 0.0
    length: float = 900.0
    pause: float = 6.0
    burst: int = 8
    deletion_policy: str = "Retain"
    after_retention: str = "Expire"
    acts: tuple[Act, ...] = ()

    @property
    def last_end(self) -> float:
        """Second in which the last event is over."""
        return max((act.at + act.seconds for act in self.acts), default=0.0)

    @classmethod
    def of(cls, seed: int) -> Self:
        """The scenario of a seed."""
        chance = random.Random(f"fleet:{seed}")
        name = draw_plot(chance)
        plot = PLOTS[name]
        length = chance.choice(plot.lengths)
        end_after = chance.choice(plot.ends) * length
        interval, timeout = chance.choice(plot.beats)
        moves = random.Random(f"retention:{seed}").random() < 0.4
        drawn = cls(
            seed,
            plot=name,
            tunnel=chance.choice(("Stream", "BaseAndStream")),
            replicas=chance.choice(plot.replicas),
            partitions=chance.choice(plot.partitions),
            keys=chance.choice((4, 12, 30)),
            interval=interval,
            timeout=timeout,
            end_after=end_after,
            length=length,
            pause=chance.choice((8.0, 30.0)),
            burst=chance.choice((2, 8)),
            deletion_policy=chance.choice(("Retain", "Delete")),
            after_retention=chance.choice(AFTER_RETENTION).value,
            acts=draw_acts(
                chance, plot, length, end_after, chance.choice((3, 8, 16) if not plot.kinds else (2, 3, 5, 8))
            ),
        )
        drawn = replace(drawn, after_retention=AfterRetention.LATEST_AT_OPEN.value) if moves else drawn
        return replace(drawn, acts=tuple(sorted((*drawn.acts, *_acts_apart(seed, length)), key=lambda act: act.at)))


def _acts_apart(seed: int, length: float) -> list[Act]:
    """A few acts of their own in every third story."""
    chance = random.Random(f"apart:{seed}")
    count = chance.choice((0, 0, 1, 2, 3, 0))
    names = [chance.choice(APART) for _ in range(count)]
    return [KINDS[name].draw(chance, name, chance.uniform(0, 0.8 * length)) for name in names]
