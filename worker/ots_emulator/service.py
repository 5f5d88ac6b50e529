"""The emulated service without its ports: instances, clock, settings, faults, and the controls of all of them.

A control does on demand what the service does by itself: split a partition, time out a client, expire a tunnel.
Tunnels are named by id or name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ots_emulator.clock import LATEST, Clock, ManualClock, ShiftedClock
from ots_emulator.instance import Instance
from ots_emulator.refusal import check_table_name, parameter_invalid
from ots_emulator.server.application import Application
from ots_emulator.server.faults import FaultRule, Faults
from ots_emulator.settings import Settings, changed_settings
from ots_emulator.tables.keys import Key
from ots_emulator.tunnels.tunnel import Tunnel

if TYPE_CHECKING:
    from ots_emulator.durable.database import Storage


class Service:
    """Everything the emulator serves, and everything that can be done to it.

    Args:
        instances: AccessKey id to secret, per instance.
        settings: behaviour.
        clock: the service's time.
        directory: where acknowledged changes are stored; None keeps the state in memory only.

    Raises:
        DataError: the data directory cannot be used.
    """

    def __init__(
        self,
        instances: Mapping[str, Mapping[str, str]],
        settings: Settings,
        clock: Clock,
        directory: Path | None = None,
    ) -> None:
        self.settings = settings
        self._shifted = ShiftedClock(clock)
        self.clock: Clock = clock if isinstance(clock, ManualClock) else self._shifted
        #: Seconds by which `advance_clock` has moved the clock.
        self.advanced = 0.0
        self.faults = Faults()
        self.instances = {name: Instance(name, dict(keys), settings) for name, keys in instances.items()}
        self.storage = None if directory is None else self._restored(directory)
        self.application = Application(self.instances, self.clock, settings, self.faults)

    def __repr__(self) -> str:
        return f"Service({', '.join(self.instances)}, {self.application.calls} calls)"

    def _restored(self, directory: Path) -> Storage:
        from ots_emulator.durable.database import Storage  # SQLite takes memory, and few emulators store anything
        from ots_emulator.durable.restore import restore

        storage = Storage(directory, fsync=self.settings.fsync)
        try:
            restore(storage, self.instances.values(), self._now_us())
        except BaseException:
            storage.close()
            raise
        return storage

    def commit(self) -> None:
        """Store the changes of controls; calls of clients store their own changes.

        Raises:
            Refusal: OTSInternalServerError, the changes could not be stored.
        """
        for instance in self.instances.values():
            instance.journal.everything_touched()
            instance.journal.commit()
            instance.freed.give_back()

    def close(self) -> None:
        """Close the data directory; from then on calls are refused.

        Raises:
            Refusal: the changes of controls could not be stored.
        """
        if self.storage is None:
            return
        try:
            if self.storage.failure is None:
                self.commit()
        finally:
            self.storage.close()

    @property
    def failure(self) -> str | None:
        """Why the last changes are not stored, so that a restart loses them; None without a failed write."""
        return self.storage.failure if self.storage is not None and self.storage.is_behind else None

    # Instances

    def instance(self, name: str) -> Instance:
        """Return an instance.

        Raises:
            Refusal: no instance has this name.
        """
        if name not in self.instances:
            raise parameter_invalid(f"no instance {name!r}, there are: {', '.join(sorted(self.instances))}")
        return self.instances[name]

    def add_instance(self, name: str, keys: Mapping[str, str]) -> None:
        """Serve one more instance, restored from the data directory; `keys` maps AccessKey ids to secrets.

        Raises:
            Refusal: there is one of this name.
            DataError: the data directory is damaged, or cannot be written.
        """
        if name in self.instances:
            raise parameter_invalid(f"instance {name!r} exists")
        instance = Instance(name, dict(keys), self.settings)
        if self.storage is not None:
            from ots_emulator.durable.restore import restore

            restore(self.storage, [instance], self._now_us())
        self.instances[name] = instance

    def remove_instance(self, name: str) -> None:
        """Delete an instance with its tables.

        Raises:
            Refusal: no instance has this name.
        """
        instance = self.instance(name)
        for table in list(instance.tables):
            instance.delete_table(table)
        instance.partition_aims.clear()
        instance.journal.commit()
        del self.instances[name]
        instance.freed.give_back()

    # Behaviour

    def add_fault(self, rule: FaultRule) -> None:
        """Put a fault rule into force."""
        self.faults.add(rule)

    def clear_faults(self) -> None:
        """Remove all fault rules."""
        self.faults.clear()

    def advance_clock(self, seconds: float) -> float:
        """Move the service's clock ahead of (or behind) its source; return its time.

        Raises:
            Refusal: no clock shows the time that this leads to.
        """
        now = self.clock.now()
        if not 0 <= now + seconds <= LATEST:
            raise parameter_invalid(
                f"advance: found {seconds}, allowed is a number of seconds that leads from {now} to 0 to {LATEST}"
            )
        if isinstance(self.clock, ManualClock):
            self.clock.advance(seconds)
        else:
            self._shifted.shift += seconds
        self.advanced += seconds
        for instance in self.instances.values():
            instance.clock_set_back(self.clock.now())
        return self.clock.now()

    def change_settings(self, /, **changes: Any) -> Settings:
        """Change behaviour at run time; return all settings.

        Raises:
            Refusal: there is no such setting, the value is of another type or out of its range, or it needs a data
                directory.
        """
        changed = changed_settings(self.settings, changes)
        if self.storage is not None:
            self.storage.set_fsync(changed.fsync)
        elif changed.fsync:
            raise parameter_invalid("fsync: found true, without a data directory only false is allowed")
        self.settings = self.application.settings = changed
        for instance in self.instances.values():
            instance.settings = changed
            for table in instance.tables.values():
                table.change_partition_rows(changed.partition_rows)
        return changed

    # Tables

    def set_partitions(self, instance: str, table: str, count: int) -> None:
        """Choose how many partitions a table gets as it is created or filled.

        Raises:
            Refusal: no such instance, or no table may have the name.
        """
        check_table_name(table)
        found = self.instance(instance)
        found.partition_aims[table] = count
        if table in found.tables:
            found.tables[table].partition_aim = count

    def split(self, instance: str, table: str, partition_id: str | None = None, *, key: Key | None = None) -> list[str]:
        """Split a partition, by default the one with most rows at its median; return ids of parent and children.

        Args:
            key: where, as a tuple of one value of the partition key; a string is given as its bytes.

        Raises:
            Refusal: no such instance, table or partition, or it cannot be split.
        """
        parts = self.instance(instance).split(table, self._now_us(), partition_id=partition_id, key=key)
        return [partition.id for partition in parts]

    def merge(self, instance: str, table: str, partition_id: str | None = None) -> list[str]:
        """Merge a partition with its successor, by default the smallest two; return ids of both parents and child.

        Raises:
            Refusal: no such instance, table or partition, or it has no successor.
        """
        parts = self.instance(instance).merge(table, self._now_us(), partition_id=partition_id)
        return [partition.id for partition in parts]

    def trim(self, instance: str, table: str) -> None:
        """Remove every entry of a table's change log, as if the retention had passed.

        Raises:
            Refusal: no such instance or table.
        """
        found = self.instance(instance)
        trimmed = found.table(table)
        if trimmed.log is not None:
            trimmed.log.trim()
            found.remove_expired(trimmed, self._now_us())

    # Tunnels

    def tunnel(self, instance: str, tunnel: str) -> Tunnel:
        """Return a tunnel by id or name.

        Raises:
            Refusal: no such instance or tunnel, or tunnels of several tables have the name.
        """
        found = [each for each in self.instance(instance).tunnels.values() if tunnel in (each.id, each.name)]
        if not found:
            raise parameter_invalid(f"no tunnel {tunnel!r} in instance {instance!r}")
        if len(found) > 1:
            ids = ", ".join(f"{each.id} of table {each.table_name!r}" for each in found)
            raise parameter_invalid(
                f"tunnel: found {tunnel!r}, the name of {len(found)} tunnels, allowed is an id: {ids}"
            )
        return found[0]

    def expire_tunnel(self, instance: str, tunnel: str) -> None:
        """Expire a tunnel.

        Raises:
            Refusal: no such instance or tunnel.
        """
        self.tunnel(instance, tunnel).expired = True

    def expire_clients(self, instance: str, tunnel: str, client: str | None = None) -> list[str]:
        """Remove one client, or all, of a tunnel as if they had timed out; return their ids.

        Raises:
            Refusal: no such instance or tunnel.
        """
        found = self.tunnel(instance, tunnel)
        gone = [known for known in found.clients if client in (None, known)]
        for known in gone:
            found.shutdown(known)
        return list(gone)

    def suspend(self, instance: str, tunnel: str, channel_id: str) -> None:
        """Take a channel from its client; no client gets it before `resume`.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        found = self.tunnel(instance, tunnel)
        found.suspend(found.channel(channel_id))

    def resume(self, instance: str, tunnel: str, channel_id: str) -> None:
        """Assign a suspended channel again.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        found = self.tunnel(instance, tunnel)
        found.resume(found.channel(channel_id))

    def rebalance(self, instance: str, tunnel: str, channel_id: str) -> None:
        """Take an open channel back from its client; the next heartbeats assign it again.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        found = self.tunnel(instance, tunnel)
        found.take_back(found.channel(channel_id))

    def conflict(self, instance: str, tunnel: str, channel_id: str) -> int:
        """Use up a channel's next sequence number, so that its client's checkpoint conflicts; return the stored one.

        Raises:
            Refusal: no such instance, tunnel or channel.
        """
        channel = self.tunnel(instance, tunnel).channel(channel_id)
        channel.sequence += 1
        return channel.sequence

    def _now_us(self) -> int:
        return int(self.clock.now() * 1_000_000)
