"""Whether a scale-up helped. One that did not is taken back, and the next one waits.

More workers do not help where one channel carries most of the load, or the sink takes no more. One settling time after
a scale-up the rows per second are compared with those before it: with less than a fifth of the growth that the new
workers should have brought, and a lag that is still too large and does not fall, it was of no use. A falling lag is
help enough: where the one worker with two channels was the slow one, the rate of all hardly grows.

The next one waits no longer once the spec was edited, or more channels can be read, such as those of partitions that
have split.

Nothing is concluded from a scale-up after which the fullest worker has as many channels as before: its channels, and
with them the lag, are as slow as they were. Of 8 channels the fullest of 4 workers has 2, and so it has with 5, 6 and
7: a sixth worker cannot show whether workers help, and eight can.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ots_tunnel_operator.autoscale.formula import Load
from ots_tunnel_operator.autoscale.history import History, Trial
from ots_tunnel_operator.autoscale.policy import Policy
from ots_tunnel_operator.autoscale.record import Record
from ots_tunnel_operator.autoscale.settling import pause

#: Least share of the expected growth of the rate that counts as help.
LEAST_SHARE = 0.2
#: Seconds of settled figures that a verdict against a scale-up needs: the end of a burst looks like it for a moment.
LEAST_SPAN = 45.0
#: Seconds of changes consumed in a second from which a lag counts as falling.
CATCHING_UP = 1.05
#: Seconds without a scale-up after the first that was of no use; doubled after each further one.
FIRST_BLOCK = 1800.0
#: Longest time without a scale-up, seconds.
LONGEST_BLOCK = 14_400.0


def judged(
    policy: Policy, history: History, workers: int, channels: int, found: Load, now: float
) -> tuple[History, Trial | None]:
    """The history without the trial once it is judged, and the trial where the scale-up was of no use.

    A trial whose number of workers is not the present one any more says nothing, and neither does one that could not
    relieve the fullest worker.
    """
    trial = history.trial
    if trial is None or (trial.after == workers and now - trial.time < pause(policy, history)):
        return history, None
    done = replace(history, trial=None)
    if trial.after != workers or found.rate is None:
        return done, None
    if _fullest(channels, trial.after) == _fullest(channels, trial.before):
        return done, None
    expected = trial.rate * (trial.after - trial.before) / trial.before
    is_late = found.lag > policy.target_lag and found.pace < CATCHING_UP
    if not is_late or found.rate - trial.rate >= LEAST_SHARE * expected:
        return replace(done, ineffective=0), None
    if found.span < LEAST_SPAN:
        return history, None
    times = history.ineffective + 1
    block = min(LONGEST_BLOCK, FIRST_BLOCK * 2 ** (times - 1))
    return replace(done, ineffective=times, blocked_until=now + block, blocked_channels=channels), trial


def _fullest(channels: int, workers: int) -> int:
    """Channels of the worker with the most, where they are spread evenly."""
    return math.ceil(channels / workers)


def relieved(history: History, record: Record, channels: int | None) -> History:
    """Without the block, where what was of no use then may help now.

    That is so once the spec was edited, such as its rate limit, or more channels can be read than when the block began.
    """
    is_edited = history.generation is not None and history.generation != record.generation
    has_more = None not in (channels, history.blocked_channels) and (channels or 0) > (history.blocked_channels or 0)
    seen = replace(history, generation=record.generation)
    if not is_edited and not has_more:
        return seen
    return replace(seen, ineffective=0, blocked_until=0.0, blocked_channels=None, relieved=record.ineffective)


def is_blocked(history: History, record: Record, now: float) -> bool:
    """Whether no scale-up is tried now; after a restart the record tells of the last one that was of no use."""
    useless = None if record.ineffective == history.relieved else record.ineffective
    recorded = useless is not None and 0 <= now - useless < FIRST_BLOCK
    return recorded or now < history.blocked_until
