"""Faults of a region: data that a scenario holds, and the table that says what each kind does.

To add one: a row in `KINDS` with how often it is drawn, how its numbers are drawn, and what it does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ots_emulator.refusal import Refusal
from ots_emulator.server.faults import FaultRule
from ots_tunnel.model import ChannelStatus
from tests.simulation.machine.network import LONGEST_RETRY, Direction, Path
from tests.simulation.oracles.delivery import WIRE_SECONDS
from tests.simulation.service import COPY, SOURCE, TABLE, TUNNEL, Gateway

if TYPE_CHECKING:
    from tests.simulation.region import Region
    from tests.simulation.worker import Pod


#: Seconds for which a proxy holds a stale answer back: nearly as long as a look counts as caught up.
STALE: Final = 13.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Args:
        at: seconds from the beginning.
        kind: a name in `KINDS`.
        target: number of the worker, or of the channel, that it happens to.
        seconds: how long it lasts, or how long a killed worker is away.
        value: what the kind needs besides.
        count: calls that it happens to.
    """

    at: float
    kind: str
    target: int = 0
    seconds: float = 0.0
    value: str = ""
    count: int = 0

    def __str__(self) -> str:
        parts = [f"{self.kind} {self.target}"]
        parts += [f"{self.seconds:.2f} s"] if self.seconds else []
        parts += [self.value] if self.value else []
        parts += [f"{self.count} calls"] if self.count else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault.

    Args:
        weight: how often it is drawn, beside the others.
        seconds: least and most, as shares of the heartbeat timeout.
        values: one of these is drawn.
        count: most calls; 0 where it lasts for a time.
    """

    apply: Callable[[Region, Fault], None]
    weight: int = 2
    seconds: tuple[float, float] = (0.0, 0.0)
    values: tuple[str, ...] = ("",)
    count: int = 0

    def draw(self, chance: random.Random, name: str, at: float, timeout: float) -> Fault:
        """A fault of this kind."""
        least, most = self.seconds
        seconds = round(timeout * (least + (most - least) * chance.random() ** 2), 3)
        count = chance.randint(1, self.count) if self.count else 0
        return Fault(round(at, 3), name, chance.randrange(12), seconds, chance.choice(self.values), count)


def _pod(region: Region, fault: Fault) -> Pod:
    return region.pods[fault.target % len(region.pods)]


def _kill(region: Region, fault: Fault) -> None:
    _pod(region, fault).kill(fault.seconds)


def _power(region: Region, fault: Fault) -> None:
    _pod(region, fault).kill(fault.seconds, power=True)


def _pause(region: Region, fault: Fault) -> None:
    process = _pod(region, fault).process
    if process is not None:
        process.pause()
        region.loop.after(fault.seconds, region.resume, process)


def _suspend(region: Region, fault: Fault) -> None:
    process = _pod(region, fault).process
    if process is not None:
        process.suspend()
        region.loop.after(fault.seconds, region.resume, process)


def _jump(region: Region, fault: Fault) -> None:
    process = _pod(region, fault).process
    if process is not None:
        process.ahead += fault.seconds if fault.value == "ahead" else -fault.seconds


def _terminate(region: Region, fault: Fault) -> None:
    _pod(region, fault).terminate()


def _slow_threads(region: Region, fault: Fault) -> None:
    process = _pod(region, fault).process
    if process is not None:
        usual, process.thread_seconds = (0.0002, 0.002), (fault.seconds / 8, fault.seconds / 4)
        region.loop.after(fault.seconds, setattr, process, "thread_seconds", usual)


def _ways(region: Region, fault: Fault) -> list[Direction]:
    """Directions of a fault of the network; its value names the hosts and the directions."""
    hosts, directions = fault.value.split()
    machine, found = _pod(region, fault).name, []
    for host in (SOURCE, COPY) if hosts == "both" else (hosts,):
        path = region.network.path(machine, f"{host}.region")
        found += [path.there] if directions in ("there", "all") else []
        found += [path.back] if directions in ("back", "all") else []
    return found


def _dark(region: Region, fault: Fault) -> None:
    for direction in _ways(region, fault):
        direction.dark_until = max(direction.dark_until, region.loop.now + fault.seconds)


def _slow(region: Region, fault: Fault) -> None:
    for direction in _ways(region, fault):
        direction.slow_until = region.loop.now + fault.seconds
        direction.delay = 0.6


def _hold(region: Region, fault: Fault) -> None:
    """A proxy holds requests back, by less than the write deadline, which the promises allow."""
    scenario = region.scenario
    for direction in _ways(region, fault):
        direction.holds_until = region.loop.now + fault.seconds
        direction.least = 0.0
        direction.hold = 0.9 * (scenario.timeout - scenario.interval) / 3


def _isolated(region: Region, fault: Fault) -> None:
    """A machine loses the service for about a heartbeat timeout, and the destination for nearly as long."""
    share = float(fault.value)
    for host, seconds in ((SOURCE, fault.seconds), (COPY, share * fault.seconds)):
        path, until = region.network.path(_pod(region, fault).name, f"{host}.region"), region.loop.now + seconds
        for direction in (path.there, path.back):
            direction.dark_until = max(direction.dark_until, until)


def _deaf(region: Region, fault: Fault) -> None:
    """A gateway answers a worker's heartbeats late and then loses them, while a proxy holds its writes back."""
    scenario, name = region.scenario, region.pods[_with_channels(region, fault.target) % len(region.pods)].name
    late_until = region.loop.now + float(fault.value) * scenario.timeout
    until = late_until + fault.seconds
    region.service.gateways[name] = Gateway(late_until, 0.95 * scenario.interval, until)
    _hold_writes(region, name, until)
    fenced = late_until + scenario.timeout - scenario.interval - _deadline(region) - region.loop.now
    for step in range(1, 5):  # there is something to write around the time at which the fence closes
        region.loop.after(fenced + 0.4 * step * scenario.interval, region.write_each_key)


def _severed(region: Region, fault: Fault) -> None:
    """A machine does not reach the service for longer than its client lives."""
    path = region.network.path(_pod(region, fault).name, f"{SOURCE}.region")
    _darken(path, region.loop.now + fault.seconds)


def _stale(region: Region, fault: Fault) -> None:
    """A proxy holds the service's answers back, and then the path to it falls dark: what came last is long old."""
    path = region.network.path(_pod(region, fault).name, f"{SOURCE}.region")
    path.back.holds_until, path.back.hold, path.back.least = region.loop.now + fault.seconds, STALE, 0.8
    region.loop.after(fault.seconds, _darken, path, region.loop.now + fault.seconds + 2 * STALE)


def _silence(region: Region, fault: Fault) -> None:
    """The answers to a worker stay away, and then come slowly: those of all its channels at the same time."""
    path = region.network.path(_pod(region, fault).name, f"{SOURCE}.region")
    path.back.dark_until = max(path.back.dark_until, region.loop.now + fault.seconds)
    region.network.pieces_until = region.loop.now + 2 * fault.seconds


def _darken(path: Path, until: float) -> None:
    for direction in (path.there, path.back):
        direction.dark_until = max(direction.dark_until, until)


def _hold_writes(region: Region, machine: str, until: float) -> None:
    """Let a proxy hold what a machine writes for nearly the write deadline."""
    held = region.network.path(machine, f"{COPY}.region").there
    held.holds_until, held.hold, held.least = until, 0.97 * _deadline(region), 0.8


def _deadline(region: Region) -> float:
    return (region.scenario.timeout - region.scenario.interval) / 3


def _held(region: Region, fault: Fault) -> None:
    """A proxy holds a worker's writes back; meanwhile its connections break, or it has to give its channels back."""
    fault = replace(fault, target=_with_channels(region, fault.target))
    pod, now = _pod(region, fault), region.loop.now
    if fault.value == "cut":  # the proxy goes away, and what it holds arrives later
        seconds = 0.7 * _deadline(region)
        _hold_writes(region, pod.name, now + seconds)
        region.loop.after(seconds, _cut, region, fault)
        return
    _hold_writes(region, pod.name, now + fault.seconds)
    region.loop.after(0.25 * fault.seconds, region.write_each_key)
    acts = {"terminate": _terminate, "close": _close, "rebalance": _rebalance_all}
    region.loop.after(0.3 * fault.seconds, acts[fault.value], region, fault)


def _with_channels(region: Region, target: int) -> int:
    """Number of a worker that holds channels, where one does."""
    owners = {channel.owner for channel in region.service.emulator.tunnel(SOURCE, TUNNEL).channels.values()}
    pods = enumerate(region.pods)
    found = [number for number, pod in pods if pod.worker is not None and pod.worker.status.client_id in owners]
    return found[target % len(found)] if found else target


def _close(region: Region, fault: Fault) -> None:
    """A second SIGTERM ends the drain."""
    _terminate(region, fault)
    region.loop.after(0.05 * fault.seconds, _terminate, region, fault)


def _rebalance_all(region: Region, fault: Fault) -> None:
    worker = _pod(region, fault).worker
    for channel in list(region.service.emulator.tunnel(SOURCE, TUNNEL).channels.values()):
        if worker is not None and channel.owner == worker.status.client_id:
            region.refused(region.service.emulator.rebalance, SOURCE, TUNNEL, channel.id)


def _frozen(region: Region, fault: Fault) -> None:
    """A path falls dark, and then the worker is stopped or dies, with writes that its kernel still holds."""
    path = region.network.path(_pod(region, fault).name, f"{COPY}.region")
    path.there.dark_until = max(path.there.dark_until, region.loop.now + fault.seconds)
    act = _pause if fault.value == "pause" else _kill
    region.loop.after(0.6 * _deadline(region), act, region, fault)


def _stopped(region: Region, fault: Fault) -> None:
    """A path falls dark, and a worker with something to write is stopped: for longer than kernels pause in between."""
    fault = replace(fault, target=_with_channels(region, fault.target))
    path = region.network.path(_pod(region, fault).name, f"{COPY}.region")
    path.there.dark_until = max(path.there.dark_until, region.loop.now + fault.seconds)
    region.loop.after(0.3 * _deadline(region), region.write_each_key)
    longer = replace(fault, seconds=fault.seconds + LONGEST_RETRY)
    region.loop.after(0.6 * _deadline(region), _pause, region, longer)


def _cut(region: Region, fault: Fault) -> None:
    process = _pod(region, fault).process
    if process is not None:
        region.network.cut(process)


def _forget(region: Region, fault: Fault) -> None:
    process = _pod(region, fault).process
    if process is not None:
        region.network.forget(process)


def _down(region: Region, fault: Fault) -> None:
    region.network.hosts[f"{fault.value}.region"].down_until = region.loop.now + fault.seconds


def _error(region: Region, fault: Fault) -> None:
    region.add_rule(replace(_refusals(fault.value), until=region.service.clock.now() + fault.seconds))


def _few_errors(region: Region, fault: Fault) -> None:
    region.add_rule(replace(_refusals(fault.value), count=fault.count))


def _refusals(value: str) -> FaultRule:
    operation, code = value.split()
    rule = FaultRule(operation=operation, code=code)
    # with another text this code is final
    return replace(rule, message="Too frequent table operations.") if code == "OTSQuotaExhausted" else rule


def _row_error(region: Region, fault: Fault) -> None:
    region.add_rule(FaultRule(operation="BatchWriteRow", row_code=fault.value, count=fault.count))


def _lost(region: Region, fault: Fault) -> None:
    region.add_rule(FaultRule(operation=fault.value, drop_response=True, count=fault.count))


def _broken_off(region: Region, fault: Fault) -> None:
    region.add_rule(FaultRule(operation=fault.value, cut_response=True, count=fault.count))


def _split(region: Region, fault: Fault) -> None:
    region.service.emulator.split(SOURCE, TABLE)


def _merge(region: Region, fault: Fault) -> None:
    region.service.emulator.merge(SOURCE, TABLE)


def _expire(region: Region, fault: Fault) -> None:
    """Let the service forget clients, but none whose channels another client could get too early.

    That is a live one beside other workers, and a dead one while its last writes may still take effect.
    """
    if region.loop.now <= max(pod.ended_at for pod in region.pods) + _deadline(region) + WIRE_SECONDS:
        return
    alive = {pod.worker.status.client_id for pod in region.pods if pod.process is not None and pod.worker is not None}
    spared = alive if len(region.pods) > 1 else set()
    clients = [client for client in region.service.emulator.tunnel(SOURCE, TUNNEL).clients if client not in spared]
    for client in clients:
        region.figures.struck_off(client)
        region.service.emulator.expire_clients(SOURCE, TUNNEL, client)


def _channel(region: Region, fault: Fault) -> str:
    channels = list(region.service.emulator.tunnel(SOURCE, TUNNEL).channels)
    return channels[fault.target % len(channels)]


def _vanish(region: Region, fault: Fault) -> None:
    """The service takes a channel from the only worker without asking, and gives it back while its writes are held."""
    if len(region.pods) > 1:
        return  # it would break the service's own word if another worker got it
    # early, so that a write which is held from the beginning is still under way when the channel comes back
    before, away = 0.15 * _deadline(region), region.scenario.interval + 0.1
    _hold_writes(region, _pod(region, fault).name, region.loop.now + before + away)
    region.write_each_key()
    region.loop.after(before, _take_away, region, fault, away)


def _take_away(region: Region, fault: Fault, seconds: float) -> None:
    emulator = region.service.emulator
    channels = emulator.tunnel(SOURCE, TUNNEL).channels.values()
    read = [found for found in channels if found.status is ChannelStatus.OPEN and found.owner is not None]
    if read:
        channel = read[fault.target % len(read)]
        emulator.suspend(SOURCE, TUNNEL, channel.id)
        channel.turn(ChannelStatus.CLOSE, None)
        region.loop.after(seconds, region.refused, emulator.resume, SOURCE, TUNNEL, channel.id)


def _stranger(region: Region, fault: Fault) -> None:
    """Somebody else stores a checkpoint: an earlier one again, so that nothing can be lost by it."""
    name = _channel(region, fault)
    channel = region.service.emulator.tunnel(SOURCE, TUNNEL).channels[name]
    earlier = region.delivery.rewound(name)
    if earlier is not None and channel.status is ChannelStatus.OPEN:
        channel.token, channel.sequence = earlier, channel.sequence + 1
        region.delivery.overrule(name, earlier)


def _rebalance(region: Region, fault: Fault) -> None:
    region.service.emulator.rebalance(SOURCE, TUNNEL, _channel(region, fault))


def _conflict(region: Region, fault: Fault) -> None:
    region.service.emulator.conflict(SOURCE, TUNNEL, _channel(region, fault))


def _suspend_channel(region: Region, fault: Fault) -> None:
    emulator, name = region.service.emulator, _channel(region, fault)
    if emulator.tunnel(SOURCE, TUNNEL).channels[name].status is ChannelStatus.WAIT:
        return  # to resume a child opens it before its parents are done, which breaks the service's own word
    emulator.suspend(SOURCE, TUNNEL, name)
    region.loop.after(fault.seconds, region.refused, emulator.resume, SOURCE, TUNNEL, name)


_DIRECTIONS = tuple(f"{host} {way}" for host in (SOURCE, COPY, "both") for way in ("there", "back", "all"))
_OPERATIONS = ("Connect", "Heartbeat", "ReadRecords", "GetCheckpoint", "Checkpoint", "DescribeTunnel", "BatchWriteRow")
_PASSING = ("OTSServerBusy", "OTSServerUnavailable", "OTSInternalServerError", "OTSTimeout", "OTSQuotaExhausted")
_ERRORS = (
    *(f"{operation} {code}" for operation in (*_OPERATIONS, "BatchWriteRow", "*") for code in _PASSING),
    "BatchWriteRow OTSNotEnoughCapacityUnit",
    "BatchWriteRow OTSTableNotReady",
    "BatchWriteRow OTSPartitionUnavailable",
)
_ROW_ERRORS = ("OTSNotEnoughCapacityUnit", "OTSTimeout", "OTSRowOperationConflict", "OTSInternalServerError")

KINDS: Final[Mapping[str, Kind]] = {
    "kill": Kind(_kill, 4, (0.02, 0.5)),
    "lose power": Kind(_power, 2, (0.05, 0.5)),
    "pause": Kind(_pause, 5, (0.2, 2.5)),
    "hiccup": Kind(_pause, 2, (0.0005, 0.03)),
    "suspend": Kind(_suspend, 3, (0.2, 4.0)),
    "clock jump": Kind(_jump, 2, (0.1, 8.0), ("ahead", "back")),
    "terminate": Kind(_terminate, 3),
    "slow disk": Kind(_slow_threads, 1, (0.1, 1.0)),
    "dark": Kind(_dark, 8, (0.05, 1.5), _DIRECTIONS),
    "slow": Kind(_slow, 3, (0.1, 2.0), _DIRECTIONS),
    "hold": Kind(_hold, 6, (0.2, 1.5), (f"{COPY} there", "both there")),
    "isolated": Kind(_isolated, 4, (0.5, 1.8), ("0.6", "0.8", "0.9", "1.0")),
    "deaf": Kind(_deaf, 5, (1.0, 1.8), ("0.4", "0.3", "0.5")),
    "stale": Kind(_stale, 4, (0.2, 0.6)),
    "severed": Kind(_severed, 3, (1.8, 3.0)),
    "held": Kind(_held, 6, (0.6, 1.2), ("cut", "close", "terminate", "close", "rebalance")),
    "frozen": Kind(_frozen, 5, (1.4, 2.2), ("pause", "kill")),
    "cut": Kind(_cut, 3),
    "forget": Kind(_forget, 2),
    "down": Kind(_down, 1, (0.05, 1.0), (SOURCE, COPY)),
    "errors": Kind(_error, 3, (0.02, 1.0), _ERRORS),
    "few errors": Kind(_few_errors, 3, values=_ERRORS, count=4),
    "row errors": Kind(_row_error, 2, values=_ROW_ERRORS, count=5),
    "lost answers": Kind(_lost, 4, values=_OPERATIONS, count=4),
    "broken answers": Kind(_broken_off, 2, values=_OPERATIONS, count=3),
    "split": Kind(_split, 3),
    "merge": Kind(_merge, 2),
    "expire client": Kind(_expire, 4),
    "rebalance": Kind(_rebalance, 2),
    "conflict": Kind(_conflict, 2),
    "stranger": Kind(_stranger, 2),
    "vanish": Kind(_vanish, 3),
    "suspend channel": Kind(_suspend_channel, 1, (0.1, 1.0)),
    "stopped": Kind(_stopped, 0, (1.6, 2.2)),
    "silence": Kind(_silence, 0, (0.35, 0.45)),
}


def draw_faults(
    chance: random.Random, length: float, timeout: float, count: int, kinds: Mapping[str, Kind] = KINDS
) -> tuple[Fault, ...]:
    """Faults between the workers' start and three quarters of the story, in order of time.

    Half of them come in bursts, since two faults close to each other find more than the same two far apart.
    """
    names = list(kinds)
    weights = [kinds[name].weight for name in names]
    faults: list[Fault] = []
    at = 0.0
    for _ in range(count):
        at = at + chance.uniform(0, 0.4 * timeout) if faults and chance.random() < 0.5 else chance.uniform(5, length)
        name = chance.choices(names, weights)[0]
        faults.append(kinds[name].draw(chance, name, min(at, length), timeout))
    return tuple(sorted(faults, key=lambda fault: fault.at))


def happen(region: Region, fault: Fault) -> None:
    """Apply a fault; one that is not possible now, such as a merge of one partition, is left out."""
    region.story.tell("fault", "%s", fault)
    try:
        region.kinds[fault.kind].apply(region, fault)
    except Refusal as refusal:
        region.story.tell("fault", "  not possible: %s", refusal)
