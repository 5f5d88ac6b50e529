"""Workers come, go, hang and vanish while a table is written, split and merged: each change is read once, in order.

Workers here follow the protocol: they read the channels they hold, checkpoint what they read, report ended channels,
and release channels in CLOSING. A page and its checkpoint are one step, so nothing may come twice.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ots_tunnel.errors import ResourceGone
from ots_tunnel.model import Action, CellOp, Marker
from ots_tunnel.protocol.plainbuffer.codec import DecodedRow, decode_row, decode_rows, encode_primary_key
from tests.support.emulator.emulator_driver import Driver, put

pytestmark = pytest.mark.unmeasured

TIMEOUT = 15
KEYS = st.integers(0, 30)
Replica = dict[int, dict[str, tuple[int, Any]]]


@dataclass
class Worker:
    """A client and what it believes to hold: channel -> (version, status)."""

    id: str
    held: dict[str, tuple[int, str]] = field(default_factory=dict)
    last_beat: float = 0.0


class Channels(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        # Hypothesis repeats a run to shorten it, so ids must be reproducible.
        chance = random.Random(0)
        self.ids = mock.patch.object(
            uuid, "uuid4", side_effect=lambda: uuid.UUID(int=chance.getrandbits(128), version=4)
        )
        self.ids.start()
        self.driver = Driver(page_rows=3)
        self.loop = asyncio.new_event_loop()
        self.workers: list[Worker] = []
        self.number = 0
        self.written: defaultdict[int, list[tuple[Action, int | None]]] = defaultdict(list)
        self.delivered: defaultdict[int, list[tuple[Action, int | None]]] = defaultdict(list)
        self.replica: Replica = {}
        self._run(self.driver.create_table(hours=24))
        self._run(self.driver.fill(12))
        self._split()
        self._run(self.driver.fill(4, start=20))
        self._split()
        self.tunnel = self._run(self.driver.create_tunnel("BaseAndStream"))

    def teardown(self) -> None:
        try:
            self.everything_arrives()
        finally:
            self.ids.stop()
            self.loop.close()

    def _run(self, call: Any) -> Any:
        return self.loop.run_until_complete(call)

    @property
    def _state(self) -> Any:
        state: Any = self.driver.emulator.state()
        return state["instances"][0]

    def _channels(self) -> dict[str, Any]:
        return {channel["id"]: channel for channel in self._state["tunnels"][0]["channels"]}

    # The table

    @rule(key=KEYS, action=st.sampled_from([Action.PUT, Action.UPDATE, Action.DELETE]))
    def write(self, key: int, action: Action) -> None:
        self.number += 1
        cells = [] if action is Action.DELETE else [put("n", self.number)]
        self._run(self.driver.write((action, key, cells)))
        self.written[key].append((action, None if action is Action.DELETE else self.number))

    @rule()
    def split(self) -> None:
        self._split()

    def _split(self) -> None:
        partitions = self._state["tables"][0]["partitions"]
        largest = max((one for one in partitions if one["open"]), key=lambda one: one["rows"])
        if largest["rows"] > 1:
            self.driver.emulator.split("demo", "t", largest["id"])

    @precondition(lambda self: hasattr(self.driver.emulator, "merge"))
    @rule()
    def merge(self) -> None:
        if sum(one["open"] for one in self._state["tables"][0]["partitions"]) > 1:
            self.driver.emulator.merge("demo", "t")

    # Workers

    @precondition(lambda self: len(self.workers) < 4)
    @rule()
    def join(self) -> None:
        client = self._run(self.driver.connect(self.tunnel, timeout=TIMEOUT))
        self.workers.append(Worker(client, last_beat=self.driver.clock.now()))

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), says_so=st.booleans())
    def leave(self, data: st.DataObject, says_so: bool) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        self.workers.remove(worker)
        if says_so:
            self._run(self.driver.call("Shutdown", tunnel_id=self.tunnel, client_id=worker.id))

    @precondition(lambda self: self.workers)
    @rule(data=st.data(), works=st.booleans())
    def beat(self, data: st.DataObject, works: bool) -> None:
        self._beat(data.draw(st.sampled_from(self.workers)), works=works)

    @rule(seconds=st.sampled_from([1, 5, 9]))
    def time_passes(self, seconds: int) -> None:
        self.driver.clock.advance(seconds)

    @rule(data=st.data(), status=st.sampled_from(["CLOSING", "OPEN"]))
    def schedule(self, data: st.DataObject, status: str) -> None:
        channel = data.draw(st.sampled_from(sorted(self._channels())))
        # Opening a waiting channel skips its parents, as a Schedule call does.
        if status == "OPEN" and not self._channels()[channel]["suspended"]:
            return
        wanted = {"channel_id": channel, "version": 0, "status": status}
        if self._channels()[channel]["status"] in ("OPEN", "CLOSING", "CLOSE"):
            self._run(self.driver.call("Schedule", tunnel_id=self.tunnel, channels=[wanted]))

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def lose_client(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        self.driver.emulator.expire_clients("demo", self.tunnel, worker.id)
        self.workers.remove(worker)

    def _beat(self, worker: Worker, *, works: bool = True) -> int:
        """One heartbeat, and a page of every open channel; returns the number of records."""
        late = self.driver.clock.now() - worker.last_beat > TIMEOUT
        reports = [(channel, version, status) for channel, (version, status) in worker.held.items()]
        try:
            answer = self._run(self.driver.heartbeat(self.tunnel, worker.id, *reports))
        except ResourceGone:
            assert late
            self.workers.remove(worker)
            return 0
        assert not late
        worker.last_beat = self.driver.clock.now()
        worker.held = answer
        assert {status for _, status in answer.values()} <= {"OPEN", "CLOSING"}
        self._check_that_no_channel_is_shared()
        return self._work(worker) if works else 0

    def _work(self, worker: Worker) -> int:
        read = 0
        for channel, (version, status) in list(worker.held.items()):
            if status == "CLOSING":
                worker.held[channel] = (version + 1, "CLOSE")
                continue
            checkpoint = self._run(self.driver.checkpoint_of(self.tunnel, channel))
            if checkpoint.checkpoint != "finished":
                page = self._run(self.driver.read(self.tunnel, channel, checkpoint.checkpoint))
                for record in page.records:
                    self._apply(channel, Action(record.action_type), decode_row(record.record))
                sequence = checkpoint.sequence_number + 1
                self._run(self.driver.checkpoint(self.tunnel, channel, page.next_token, sequence))
                read += len(page.records)
                if page.next_token != "finished":
                    continue
            read += 1
            worker.held[channel] = (version + 1, "TERMINATED")
        return read

    def _apply(self, channel: str, action: Action, row: DecodedRow) -> None:
        key: Any = row.primary_key[0][1]
        if not channel.startswith("BaseData_"):
            self.delivered[key].append((action, row.columns[0].value if row.columns else None))
        if action is Action.DELETE:
            self.replica.pop(key, None)
            return
        cells = {} if action is Action.PUT else self.replica.get(key, {})
        for column in row.columns:
            assert column.op is CellOp.PUT
            assert column.timestamp_ms is not None
            if column.timestamp_ms >= cells.get(column.name, (0, None))[0]:
                cells[column.name] = (column.timestamp_ms, column.value)
        self.replica[key] = cells

    # What must hold

    def _check_that_no_channel_is_shared(self) -> None:
        now = self.driver.clock.now()
        holders = Counter(
            channel
            for worker in self.workers
            if now - worker.last_beat <= TIMEOUT
            for channel, (_, status) in worker.held.items()
            if status in ("OPEN", "CLOSING")
        )
        assert max(holders.values(), default=0) <= 1

    @invariant()
    def owners_are_clients_and_parents_come_first(self) -> None:
        clients = {client["id"] for client in self._state["tunnels"][0]["clients"]}
        channels = self._channels()
        for channel in channels.values():
            if channel["owner"] is None:
                assert channel["status"] not in ("OPEN",)
                continue
            assert channel["owner"] in clients
            assert self._may_be_read(channel, channels)

    @invariant()
    def no_change_is_delivered_twice_or_out_of_order(self) -> None:
        for key, changes in self.delivered.items():
            assert changes == self.written[key][: len(changes)]

    @staticmethod
    def _may_be_read(channel: Any, channels: dict[str, Any]) -> bool:
        parents = [channels[parent] for parent in channel["parents"] if parent in channels]
        if channel["type"] == "Stream":
            parents += [one for one in channels.values() if one["type"] == "BaseData"]
        return all(parent["status"] == "TERMINATED" for parent in parents)

    @precondition(lambda self: self.workers)
    @rule()
    def everything_finds_an_owner(self) -> None:
        """Vanished clients time out, live ones release channels: two heartbeats later every channel has an owner."""
        for _ in range(3):
            self.driver.clock.advance(TIMEOUT / 3 + 1)
            for worker in list(self.workers):
                self._beat(worker, works=False)
        for worker in list(self.workers):
            # A client releases channels in CLOSING with its next heartbeat.
            for channel, (version, status) in worker.held.items():
                if status == "CLOSING":
                    worker.held[channel] = (version + 1, "CLOSE")
        for _ in range(2):
            for worker in list(self.workers):
                self._beat(worker, works=False)
        channels = self._channels()
        open_to_all = [
            one
            for one in channels.values()
            if one["status"] != "TERMINATED" and not one["suspended"] and self._may_be_read(one, channels)
        ]
        if self.workers:
            load = Counter({worker.id: 0 for worker in self.workers})
            load.update(one["owner"] for one in open_to_all)
            assert None not in load, "a channel has no owner"
            assert max(load.values()) - min(load.values()) <= 1

    def everything_arrives(self) -> None:
        """In the end base data and stream together equal the table, and the stream had every change."""
        for channel in self._channels().values():
            if channel["suspended"]:
                wanted = {"channel_id": channel["id"], "version": 0, "status": "OPEN"}
                self._run(self.driver.call("Schedule", tunnel_id=self.tunnel, channels=[wanted]))
        self.join()
        quiet = 0
        for _ in range(1000):
            self.driver.clock.advance(1)
            moved = sum(self._beat(worker) for worker in list(self.workers))
            # Long enough for vanished clients to time out.
            quiet = 0 if moved else quiet + 1
            if quiet > TIMEOUT + 5:
                break
        assert quiet > TIMEOUT + 5
        assert {k: d for k, d in self.delivered.items() if d} == {k: w for k, w in self.written.items() if w}
        assert self.replica == self._run(self._table())

    async def _table(self) -> Replica:
        rows: Replica = {}
        start, end = (encode_primary_key((("k", kind),)) for kind in (Marker.INF_MIN, Marker.INF_MAX))
        answer = await self.driver.call(
            "GetRange",
            table_name="t",
            direction="FORWARD",
            max_versions=1,
            inclusive_start_primary_key=start,
            exclusive_end_primary_key=end,
        )
        for row in decode_rows(answer.rows):
            key: Any = row.primary_key[0][1]
            rows[key] = {column.name: (column.timestamp_ms or 0, column.value) for column in row.columns}
        return rows


TestChannels = pytest.mark.lasts(31)(Channels.TestCase)
TestChannels.settings = settings(deadline=None, max_examples=60, stateful_step_count=50, report_multiple_bugs=False)


@pytest.mark.long
@pytest.mark.lasts(400)
def test_channels_at_length() -> None:
    run_state_machine_as_test(Channels, settings=settings(deadline=None, max_examples=1_500, stateful_step_count=80))
