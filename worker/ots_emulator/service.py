"""What the service does by itself, done on demand: partitions, clients, tunnels, channels and logs."""

from __future__ import annotations

from ots_emulator.clock import Clock
from ots_emulator.instance import Instance
from ots_emulator.refusal import Refusal, parameter_invalid
from ots_emulator.tables.keys import Key
from ots_emulator.tunnels.tunnel import Tunnel
from ots_tunnel.model import ChannelStatus


class Levers:
    """The levers of an emulator; tunnels are named by id or name.

    Args:
        instances: by name.
        clock: the service's time.
    """

    def __init__(self, instances: dict[str, Instance], clock: Clock) -> None:
        self.instances = instances
        self.clock = clock

    def set_partitions(self, instance: str, table: str, count: int) -> None:
        """Choose how many partitions a table will have; takes effect as it is created or filled.

        Raises:
            Refusal: no such instance.
        """
        found = self._instance(instance)
        found.partition_aims[table] = count
        if table in found.tables:
            found.tables[table].partition_aim = count

    def split(self, instance: str, table: str, partition_id: str | None = None, *, key: Key | None = None) -> list[str]:
        """Split a partition, by default the one with most rows at its median; return ids of parent and children.

        Raises:
            Refusal: no such instance, table or partition, or it cannot be split.
        """
        parts = self._instance(instance).split(table, self._now_us(), partition_id=partition_id, key=key)
        return [partition.id for partition in parts]

    def merge(self, instance: str, table: str, partition_id: str | None = None) -> list[str]:
        """Merge a partition with the one behind it, by default the smallest two; return ids of both parents and child.

        Raises:
            Refusal: no such instance, table or partition, or there is none behind it.
        """
        parts = self._instance(instance).merge(table, self._now_us(), partition_id=partition_id)
        return [partition.id for partition in parts]

    def suspend(self, instance: str, tunnel: str, channel_id: str) -> None:
        """Take a channel away and keep it from everybody, until `resume`.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        found = self._tunnel(instance, tunnel)
        found.suspend(found.channel(channel_id))

    def resume(self, instance: str, tunnel: str, channel_id: str) -> None:
        """Let a channel be given away again.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        found = self._tunnel(instance, tunnel)
        found.resume(found.channel(channel_id))

    def conflict(self, instance: str, tunnel: str, channel_id: str) -> int:
        """Let a channel's next checkpoint find that somebody has used its sequence number; return the stored one.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        channel = self._tunnel(instance, tunnel).channel(channel_id)
        channel.sequence += 1
        return channel.sequence

    def expire_clients(self, instance: str, tunnel: str, client: str | None = None) -> list[str]:
        """Forget one client, or all, of a tunnel (id or name) as if they had timed out; return their ids.

        Raises:
            Refusal: no such instance or tunnel.
        """
        found = self._tunnel(instance, tunnel)
        gone = [known for known in found.clients if client in (None, known)]
        for known in gone:
            found.shutdown(known)
        return list(gone)

    def expire_tunnel(self, instance: str, tunnel: str) -> None:
        """Let a tunnel (id or name) expire.

        Raises:
            Refusal: no such instance or tunnel.
        """
        self._tunnel(instance, tunnel).expired = True

    def trim(self, instance: str, table: str) -> None:
        """Forget a table's whole change log, as if the retention had passed.

        Raises:
            Refusal: no such instance or table.
        """
        log = self._instance(instance).table(table).log
        if log is not None:
            log.trim()

    def rebalance(self, instance: str, tunnel: str, channel_id: str) -> None:
        """Take an open channel back from its client; the next heartbeats give it away again.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        channel = self._tunnel(instance, tunnel).channel(channel_id)
        if channel.status is ChannelStatus.OPEN:
            channel.turn(ChannelStatus.CLOSING, channel.owner)

    def _instance(self, name: str) -> Instance:
        if name not in self.instances:
            raise parameter_invalid(f"no instance {name!r}, there are: {', '.join(sorted(self.instances))}")
        return self.instances[name]

    def _tunnel(self, instance: str, tunnel: str) -> Tunnel:
        for found in self._instance(instance).tunnels.values():
            if tunnel in (found.id, found.name):
                return found
        raise Refusal("OTSParameterInvalid", f"no tunnel {tunnel!r} in instance {instance!r}")

    def _now_us(self) -> int:
        return int(self.clock.now() * 1_000_000)
