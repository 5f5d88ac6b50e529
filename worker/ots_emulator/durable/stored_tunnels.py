"""The tunnels of one instance as the database holds them, each with its channels and clients."""

from __future__ import annotations

from collections.abc import Mapping

from ots_emulator.durable.database import Batch
from ots_emulator.durable.dirty import Dirty
from ots_emulator.durable.stored_documents import StoredDocuments
from ots_emulator.instance import Instance
from ots_emulator.tunnels.channel import Client, TunnelChannel
from ots_emulator.tunnels.tunnel import Tunnel

#: What is stored with its tunnel and removed with it.
Member = TunnelChannel | Client


class StoredTunnels:
    """Compares tunnels with their stored form.

    Args:
        documents: the documents of the instance.
        owner: number of the instance's document.
    """

    def __init__(self, documents: StoredDocuments, owner: int) -> None:
        self._documents = documents
        self._owner = owner
        self._members: dict[Tunnel, set[Member]] = {}

    def adopt(self, tunnel: Tunnel, number: int, members: Mapping[Member, int]) -> None:
        """Take over a tunnel that was read: its number, and those of its channels and clients."""
        self._documents.adopt(tunnel, number)
        for member, member_number in members.items():
            self._documents.adopt(member, member_number)
        self._members[tunnel] = set(members)

    def add_changes(self, instance: Instance, dirty: Dirty, batch: Batch) -> None:
        """Write the tunnels, channels and clients that differ from what is stored."""
        if dirty.tunnels or len(self._members) != len(instance.tunnels):
            self._add_tunnels(instance, dirty, batch)
        for tunnel, channel in dirty.channels:
            if tunnel in self._members:
                self._add_channel(tunnel, channel, instance, batch)

    def _add_tunnels(self, instance: Instance, dirty: Dirty, batch: Batch) -> None:
        current = instance.tunnels.values()
        for gone in self._members.keys() - set(current):
            for member in self._members.pop(gone):
                self._documents.remove(member, batch)
            self._documents.remove(gone, batch)
        for tunnel in current:
            if tunnel in dirty.tunnels or tunnel not in self._members:
                self._add_tunnel(tunnel, instance, batch)

    def _add_tunnel(self, tunnel: Tunnel, instance: Instance, batch: Batch) -> None:
        documents, schema = self._documents, instance.tables[tunnel.table_name].schema
        documents.save(tunnel, self._owner, schema, batch)
        number = documents.number(tunnel)
        members: list[Member] = [*tunnel.channels.values(), *tunnel.clients.values()]
        for gone in self._members.get(tunnel, set()).difference(members):
            documents.remove(gone, batch)
        for member in members:
            documents.save(member, number, schema, batch)
        self._members[tunnel] = set(members)

    def _add_channel(self, tunnel: Tunnel, channel: TunnelChannel, instance: Instance, batch: Batch) -> None:
        documents, schema = self._documents, instance.tables[tunnel.table_name].schema
        documents.save(tunnel, self._owner, schema, batch)
        if channel in self._members[tunnel]:
            documents.save(channel, documents.number(tunnel), schema, batch)
