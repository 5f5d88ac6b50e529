"""Four workers on 32 channels under strikes and faults: nothing is lost, repeated needlessly, or late."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.scene import CHANNELS, ROWS, chaos
from tests.chaos.schedule import LAST_STRIKE, LENGTH, WORKERS, Blow, plan

pytestmark = pytest.mark.unmeasured

#: Generous, because the machine may be busy.
TIMEOUT = 500


def two_at_a_time(number: int) -> pytest.MarkDecorator:
    """The processes of more than two runs at once would wait for processors longer than for each other."""
    return pytest.mark.xdist_group(f"chaos-{number % 2}")


#: Counts of the judge that a run reaches, on a busy machine by more kills: the strikes hit workers that held channels.
ENOUGH = {
    "hand-overs to another process": CHANNELS,
    "strikes with entries read and not written": 3,
    "entries read and not written at strikes": 101,
    "rows repeated after a strike": 1,
}
#: Seconds of the short run; its seed has every kind of blow.
SHORT = 75.0
#: Seed and seconds of each run.
RUNS = [
    pytest.param(12, SHORT, marks=pytest.mark.lasts(100), id="short"),
    *(
        pytest.param(seed, LENGTH, marks=[pytest.mark.long, two_at_a_time(seed), pytest.mark.lasts(170)], id=str(seed))
        for seed in range(11)
    ),
]


@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize(("seed", "length"), RUNS)
async def test_nothing_is_lost_disordered_or_repeated_without_a_strike(
    seed: int, length: float, tmp_path: Path
) -> None:
    events = plan(seed, length, last_strike=length - (LENGTH - LAST_STRIKE))
    blows = Counter(event.blow for event in events)
    print(f"seed {seed}:", *events, sep="\n")
    began = time.monotonic()

    async with chaos(tmp_path, seed) as run:
        await run.prepare()
        assert len((await run.tunnel())["channels"]) >= 2 * CHANNELS
        await run.endure(events, length, ENOUGH)
        assert run.processes is not None
        stopped = time.monotonic()
        await run.catch_up()
        caught_up = time.monotonic()
        comparison = await run.compare()
        codes = await run.processes.leave()
        after = await run.compare()
        verdict = await run.judge()
        if verdict.violations or not comparison.equal:
            print("the ledger is kept:", run.keep_ledger(f"chaos-{seed}"))

    print(*run.processes.complaints(), sep="\n")
    print(verdict)
    print(f"caught up in {caught_up - stopped:.1f} s, {time.monotonic() - began:.1f} s in all; {comparison}")
    assert verdict.violations == []
    assert comparison.equal, comparison
    assert after.equal, "a write took effect late"
    assert run.processes.ended == []
    assert codes == [0] * WORKERS
    counts = verdict.counts
    assert len(run.processes.strikes) >= blows[Blow.KILL] + blows[Blow.PAUSE]
    assert counts["rows written"] > ROWS + counts["changes acknowledged to writers"]
    assert {name: counts[name] for name, least in ENOUGH.items() if counts[name] < least} == {}
    assert counts["channels"] >= 2 * CHANNELS + blows[Blow.SPLIT] + blows[Blow.MERGE]


#: Missing safeguard -> kind of violation that the judge has to find.
SABOTAGE = {
    "without_fence": "old over new",
    "with_early_checkpoints": "checkpoint",
    "with_holes": "checkpoint",
    "without_order": "order",
    "without_last_checkpoint": "terminated",
}


@pytest.mark.long
@pytest.mark.lasts(130)
@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=two_at_a_time(number)) for number, kind in enumerate(SABOTAGE)]
)
async def test_a_missing_safeguard_is_noticed(kind: str, tmp_path: Path) -> None:
    length = 75.0
    async with chaos(tmp_path, 0) as run:
        await run.prepare(("-m", "tests.chaos.sabotage", kind))
        await run.endure(plan(0, length, last_strike=45.0), length, {f"violation: {SABOTAGE[kind]}": 1})
        verdict = await run.judge()

    print(verdict)
    assert verdict.counts[f"violation: {SABOTAGE[kind]}"] > 0
