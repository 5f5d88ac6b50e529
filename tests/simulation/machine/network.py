"""The network of a region: hosts, paths that can be dark or slow in one direction, and TCP as far as it matters.

Theory of operation
-------------------
A connection has two flows, one in each direction. A flow is what the sender's kernel holds: bytes that were written
and not acknowledged. It tries to deliver them at once, and after a growing pause as long as the path is dark. So what
a process has written arrives also when the process has given up or is dead, unless its kernel was told to reset the
connection (`SO_LINGER {1, 0}` before closing) or to stop trying (`TCP_USER_TIMEOUT`). A dark path back costs the
acknowledgement only: the bytes have arrived, and the sender does not know it.

What the simulation leaves out: windows, slow start, checksums, TLS. A write is delivered as a whole, unless answers
come in pieces (`window`).

Faults act on `Path` (dark, slow), on `Network.cut` (a reset of every connection of a process) and on
`Network.forget` (a middlebox forgets the connections: they stay open, and nothing arrives any more).
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.simulation.machine.determinism import CURRENT
from tests.simulation.machine.loop import VirtualLoop
from tests.simulation.machine.process import Process
from tests.simulation.machine.window import Window

#: Seconds until a kernel tries again, and the longest pause between two tries.
FIRST_RETRY, LONGEST_RETRY = 0.2, 30.0
#: Seconds on the wire in one direction.
WIRE = (0.0003, 0.004)
#: Seconds after which a kernel gives a connection up by itself: Linux's 15 retransmissions.
KERNEL_GIVES_UP = 924.0
#: Option of TCP in Linux; not in every `socket` module.
TCP_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", 18)


@dataclass(slots=True)
class Direction:
    """One direction of a path."""

    dark_until: float = 0.0
    slow_until: float = 0.0
    #: Seconds that it takes longer while it is slow.
    delay: float = 0.0
    #: Until when a proxy on it holds bytes back that it has acknowledged, and for how long at most.
    holds_until: float = 0.0
    hold: float = 0.0
    #: Share of `hold` that it takes at least.
    least: float = 0.0


@dataclass(slots=True)
class Path:
    """Both directions between a process and a host."""

    there: Direction = field(default_factory=Direction)
    back: Direction = field(default_factory=Direction)


class SocketOptions:
    """What `get_extra_info("socket")` gives; takes the options that change how a connection ends."""

    family = socket.AF_INET

    def __init__(self) -> None:
        self.resets_on_close = False
        self.user_timeout = KERNEL_GIVES_UP

    def fileno(self) -> int:
        """That of a closed socket: there is no kernel that could be asked for its bytes."""
        return -1

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        """Keep SO_LINGER and TCP_USER_TIMEOUT; others make no difference here."""
        if (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER):
            on, seconds = struct.unpack("ii", value)
            self.resets_on_close = bool(on) and not seconds
        elif (level, option) == (socket.IPPROTO_TCP, TCP_USER_TIMEOUT):
            self.user_timeout = value / 1000 or KERNEL_GIVES_UP


class Flow:
    """One direction of a connection.

    Args:
        ways: the direction of the bytes, and that of their acknowledgements.
        sender: the process whose machine sends, None for a host.
        deliver: called with what arrives, None for the end of the bytes.
        broken: called when the kernel gives up.
        options: of the sender's socket.
    """

    def __init__(
        self,
        network: Network,
        ways: tuple[Direction, Direction],
        sender: Process | None,
        deliver: Callable[[bytes | None], None],
        broken: Callable[[], None],
        options: SocketOptions,
    ) -> None:
        self._network = network
        self._there, self._back = ways
        self._sender = sender
        self._deliver = deliver
        self._broken = broken
        self._waiting: deque[bytes | None] = deque()
        self._unacknowledged_since: float | None = None
        self._retry = FIRST_RETRY
        self._retrying = False
        self._arrival = 0.0
        self._options = options
        self.is_closed = False
        #: A middlebox has forgotten the connection.
        self.is_forgotten = False

    @property
    def arrival(self) -> float:
        """When the last byte that is on the wire arrives."""
        return self._arrival

    def push(self, data: bytes | None) -> None:
        """Send bytes, or None for their end."""
        if self.is_closed:
            return
        self._waiting.append(data)
        if self._unacknowledged_since is None:
            self._unacknowledged_since = self._network.loop.now
        if not self._retrying:
            self._try()

    def close(self) -> None:
        """Send nothing more; what is on the wire arrives."""
        self.is_closed = True
        self._waiting.clear()

    def _try(self) -> None:
        self._retrying = False
        now, since = self._network.loop.now, self._unacknowledged_since
        if self.is_closed or since is None:
            return
        if self._sender is not None and self._sender.machine_sleeps:
            self._try_again(FIRST_RETRY)
            return
        if now - since >= self._options.user_timeout:
            self.close()
            self._broken()
            return
        if now >= self._there.dark_until and not self.is_forgotten:
            while self._waiting:
                self._put_on_wire(self._waiting.popleft())
            if now >= self._back.dark_until:
                self._unacknowledged_since, self._retry = None, FIRST_RETRY
                return
        self._try_again(min(self._retry, since + self._options.user_timeout - now))
        self._retry = min(2 * self._retry, LONGEST_RETRY)

    def _try_again(self, seconds: float) -> None:
        self._retrying = True
        self._network.loop.after(max(seconds, 0.001), self._try)

    def _put_on_wire(self, data: bytes | None) -> None:
        now = self._network.loop.now
        wire = self._network.wire_seconds(self._there)
        if now < self._there.holds_until:
            # A promise covers bytes that are held for less than the deadline, since they were written.
            written = now if self._unacknowledged_since is None else self._unacknowledged_since
            wire = max(wire, self._network.drawn(self._there.hold, self._there.least) - (now - written))
        self._arrival = max(self._arrival, now + wire)
        self._network.loop.after(self._arrival - now, self._deliver, data)


class ClientConnection(asyncio.Transport):
    """A process's end of a connection, as asyncio's protocols see it."""

    def __init__(self, network: Network, process: Process, host: Host, path: Path) -> None:
        super().__init__()
        self._network = network
        self.process = process
        self.host = host
        self.options = SocketOptions()
        self._protocol: Any = None
        self.is_open = True
        self.server = ServerConnection(network, self)
        self.out = Flow(
            network, (path.there, path.back), process, self.server.received, self._kernel_gave_up, self.options
        )
        self.back = Flow(network, (path.back, path.there), None, self._arrived, lambda: None, SocketOptions())
        self._window = Window(network.loop.after, partial(self._tell, self._data), partial(network.taken, process))
        #: When the last bytes were written.
        self.sent_at = 0.0

    def attach(self, protocol: Any) -> None:
        """Begin with a protocol."""
        self._protocol = protocol
        protocol.connection_made(self)

    # asyncio's interface

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The socket, and names of both ends."""
        known = {"socket": self.options, "peername": (self.host.name, 80), "sockname": (self.process.name, 1)}
        return known.get(name, default)

    def write(self, data: Any) -> None:
        """Hand bytes to the kernel."""
        if self.is_open:
            self.sent_at = self._network.loop.now
            self.out.push(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Hand bytes to the kernel."""
        self.write(b"".join(list_of_data))

    def get_write_buffer_size(self) -> int:
        """The kernel takes everything at once."""
        return 0

    def is_closing(self) -> bool:
        """Whether it was closed on this side."""
        return not self.is_open

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer in the process."""

    def get_protocol(self) -> Any:
        """The protocol."""
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        """Continue with another protocol."""
        self._protocol = protocol

    def pause_reading(self) -> None:
        """What arrives as a whole is delivered nevertheless, the rest of an answer in pieces is not."""
        self._window.pause()

    def resume_reading(self) -> None:
        """See `pause_reading`."""
        self._window.resume()

    @property
    def is_taking(self) -> bool:
        """Whether the process takes an answer that comes in pieces."""
        return self._window.is_taking

    def abort(self) -> None:
        """Close the socket, as asyncio does: the kernel goes on sending unless it was told to reset."""
        if self.is_open:
            self.is_open = False
            self.kernel_closes()
            if self._protocol is not None:
                self._tell(self._lost, None)

    close = abort

    # The kernel

    def kernel_closes(self) -> None:
        """The process has closed its socket, or is dead."""
        self.is_open = False
        if self.options.resets_on_close:
            self.reset()
        else:
            self.out.push(None)
        self._network.connections.pop(self, None)

    def reset(self) -> None:
        """Forget unsent bytes, and say so to the other side."""
        self.out.close()
        self._network.reset_arrives(self)

    def vanish(self) -> None:
        """The machine has lost its power."""
        self.is_open = False
        self.out.close()
        self._network.connections.pop(self, None)

    def break_down(self, error: OSError | None) -> None:
        """The connection is broken: the process is told."""
        if self.is_open:
            self.is_open = False
            self.out.close()
            self._network.connections.pop(self, None)
            self._tell(self._lost, error)

    def _kernel_gave_up(self) -> None:
        self.break_down(TimeoutError(110, "Connection timed out"))

    def _arrived(self, data: bytes | None) -> None:
        if not self.is_open:
            self.server.close()
        elif data is None:
            self._tell(self._ended)
        elif self._network.loop.now < self._network.pieces_until:
            self._window.arrive(data)
        else:
            self._tell(self._data, data)

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        self._network.loop.call_soon(callback, *arguments, context=self.process.context)

    def _data(self, data: bytes) -> None:
        if self.is_open:
            self._protocol.data_received(data)

    def _ended(self) -> None:
        if self.is_open and not self._protocol.eof_received():
            self.abort()

    def _lost(self, error: OSError | None) -> None:
        self._protocol.connection_lost(error)


class ServerConnection:
    """A host's end of a connection."""

    def __init__(self, network: Network, client: ClientConnection) -> None:
        self._network = network
        self._client = client
        self._buffer = b""
        self.is_open = True

    def received(self, data: bytes | None) -> None:
        """Bytes have arrived."""
        if not self.is_open:
            return
        if data is None:
            self.close()
            return
        self._buffer = self._client.host.feed(self._client, self._buffer + data)

    def answer(self, data: bytes) -> None:
        """Send bytes back."""
        if self.is_open:
            self._client.back.push(data)

    def close(self) -> None:
        """Close; the client is told where its path is light."""
        if self.is_open:
            self.is_open = False
            self._client.back.push(None)


class Host:
    """A server: `feed` takes what has arrived, and returns what it has not used yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        #: Until when it refuses connections.
        self.down_until = 0.0

    def feed(self, client: ClientConnection, data: bytes) -> bytes:
        """Use bytes of a connection."""
        raise NotImplementedError


class Network:
    """All hosts, paths and connections.

    Args:
        chance: decides how long bytes are under way.
    """

    def __init__(self, loop: VirtualLoop, chance: random.Random) -> None:
        self.loop = loop
        loop.network = self
        self._chance = chance
        self.hosts: dict[str, Host] = {}
        self._paths: dict[tuple[str, str], Path] = {}
        #: Open connections, in the order of their opening.
        self.connections: dict[ClientConnection, None] = {}
        #: Until when answers come in pieces.
        self.pieces_until = 0.0
        #: Called with a process that takes one more of them, and how many it takes then.
        self.on_taken: Callable[[Process, int], None] = lambda process, count: None

    def path(self, machine: str, host: str) -> Path:
        """The path between a machine and a host; it is made at its first use."""
        return self._paths.setdefault((machine, host), Path())

    @property
    def disturbed_until(self) -> float:
        """Second in which the last path and host that are disturbed now are as usual again."""
        directions = [direction for path in self._paths.values() for direction in (path.there, path.back)]
        ends = [max(each.dark_until, each.slow_until, each.holds_until) for each in directions]
        return max([*ends, *(host.down_until for host in self.hosts.values())], default=0.0)

    def drawn(self, most: float, least: float = 0.0) -> float:
        """Seconds up to a limit, and a share of it at least."""
        return most * self._chance.uniform(least, 1.0)

    def wire_seconds(self, direction: Direction) -> float:
        """Seconds that bytes take in a direction."""
        seconds = self._chance.uniform(*WIRE)
        if self.loop.now < direction.slow_until:
            seconds += direction.delay * self._chance.random()
        return seconds

    async def open(self, host: str, port: int) -> ClientConnection:
        """Open a connection, for the running process; waits as long as the path is dark.

        Raises:
            OSError: the host refuses.
        """
        process = CURRENT.get()
        assert process is not None, "only a simulated process has a network"
        target, path = self.hosts[host], self.path(process.machine, host)
        opened: asyncio.Future[None] = self.loop.create_future()
        self._knock(opened, process, target, path, 1.0)
        await opened
        connection = ClientConnection(self, process, target, path)
        self.connections[connection] = None
        return connection

    def _knock(self, opened: asyncio.Future[None], process: Process, target: Host, path: Path, pause: float) -> None:
        if opened.done() or process.is_dead:
            return
        now = self.loop.now
        if process.machine_sleeps or now < max(path.there.dark_until, path.back.dark_until):
            self.loop.after(pause, self._knock, opened, process, target, path, min(2 * pause, 32.0))
            return
        seconds = self.wire_seconds(path.there) + self.wire_seconds(path.back)
        self.loop.after(seconds, self._opened, opened, process, target)

    def _opened(self, opened: asyncio.Future[None], process: Process, target: Host) -> None:
        refused = self.loop.now < target.down_until
        self.loop.call_soon(_settle, opened, refused, context=process.context)

    def reset_arrives(self, connection: ClientConnection) -> None:
        """A reset is on its way to the host."""
        path = self.path(connection.process.machine, connection.host.name)
        if self.loop.now >= path.there.dark_until:
            behind = max(self.loop.now + self.wire_seconds(path.there), connection.out.arrival)
            self.loop.after(behind - self.loop.now, connection.server.close)

    def of(self, process: Process) -> list[ClientConnection]:
        """The open connections of a process."""
        return [connection for connection in self.connections if connection.process is process]

    def taken(self, process: Process) -> None:
        """A process takes one more answer that comes in pieces."""
        self.on_taken(process, sum(connection.is_taking for connection in self.of(process)))

    def process_died(self, process: Process, *, power: bool) -> None:
        """The kernel closes the sockets of a dead process, or is gone as well."""
        for connection in self.of(process):
            if power:
                connection.vanish()
            else:
                connection.kernel_closes()

    def cut(self, process: Process) -> None:
        """Reset every connection of a process, as a restarted load balancer does; what it has passed on arrives."""
        for connection in self.of(process):
            connection.break_down(ConnectionResetError(104, "Connection reset by peer"))

    def forget(self, process: Process) -> None:
        """Let every connection of a process fall silent."""
        for connection in self.of(process):
            connection.out.is_forgotten = connection.back.is_forgotten = True


def _settle(opened: asyncio.Future[None], refused: bool) -> None:
    if opened.done():
        return
    if refused:
        opened.set_exception(ConnectionRefusedError(111, "Connection refused"))
    else:
        opened.set_result(None)
