"""The channels that one client holds, each with its task, as the answers of its heartbeats bring and take them away."""

from __future__ import annotations

import asyncio

from ots_tunnel.model import Channel, ChannelId, ChannelStatus
from ots_tunnel.protocol import channel as machine
from ots_tunnel.protocol.assignment import merge
from ots_tunnel.worker.channel.task import ChannelTask
from ots_tunnel.worker.context import ClientContext
from ots_tunnel.worker.progress.channel_progress import ChannelProgress


class HeldChannels:
    """Starts, stops and notifies the channels of one client."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._channels: dict[ChannelId, ChannelTask] = {}
        self._draining = False

    def __repr__(self) -> str:
        return f"HeldChannels({len(self)})"

    def __len__(self) -> int:
        return len(self._channels)

    @property
    def all_over(self) -> bool:
        """Whether no channel runs any more; the end of each is reported or about to be."""
        return all(task.is_over for task in self._channels.values())

    def report(self) -> list[Channel]:
        """What the next heartbeat carries."""
        return [task.channel for task in self._channels.values() if task.channel.status is not ChannelStatus.WAIT]

    def progress(self) -> dict[ChannelId, ChannelProgress]:
        """The figures of every channel."""
        return {key: task.progress for key, task in self._channels.items()}

    def apply(self, answer: tuple[Channel, ...], tasks: asyncio.TaskGroup) -> bool:
        """Start, stop and notify the channels of an answer; True when there is a new one."""
        assignment = merge({key: task.channel for key, task in self._channels.items()}, answer)
        gained = False
        for channel_id in assignment.vanished:
            self._channels.pop(channel_id).feed(machine.Vanished())
        for channel_id in assignment.fresh:
            last = self._channels.pop(channel_id, None)
            if last is not None:
                last.feed(machine.Vanished())
            if not self._draining:
                error = last.progress.error if last is not None else None
                task = ChannelTask(self._context, assignment.channels[channel_id], error)
                self._channels[channel_id] = task
                gained = True
                tasks.create_task(task.run(), name=f"events {channel_id}")
        for channel_id, task in self._channels.items():
            task.feed(machine.Notified(assignment.channels[channel_id]))
        return gained

    def drain(self) -> None:
        """Hand every channel back, and take no new ones."""
        self._draining = True
        for task in self._channels.values():
            task.feed(machine.Drain())

    def leave(self) -> None:
        """The client holds nothing any more: no write leaves from now on."""
        for task in self._channels.values():
            task.feed(machine.Vanished())
