"""A case in which the vendor's library holds a shard and reads it no more: docs/stream.md tells what to do about it.

A lease of which a renewal or a checkpoint is answered late expires in the eyes of its own worker, which begins to shut
its consumer down. With the answer the lease is held again, under the same identity, before that consumer has ended: it
stays where it is, shut down, and its lease is renewed for ever.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ots_emulator.server.faults import FaultRule
from ots_tunnel.protocol import table_pb2 as pb
from ots_tunnel.protocol.http.operations import TABLE_OPERATIONS
from ots_tunnel.stream.calls.lease_table import LeaseTable
from tests.oracle.stream_worker import STATUS, create_table, running
from tests.support.emulator.emulator_scene import TABLE, EmulatorScene
from tests.support.waiting import until

pytestmark = [pytest.mark.oracle, pytest.mark.leases, pytest.mark.timeout(600)]

KEYS = [f"k{number}" for number in range(8)]
#: Seconds. The late answer is that of a checkpoint behind new records, not of a renewal: without a task under way the
#: consumer ends before the lease is held again.
LEASE, ROUND = 6.0, 5.0
#: Seconds by which the answer comes later than the lease lasts. A round of renewals in this time drops the lease, which
#: is lost then: the shorter, the seldomer.
LATER = 0.7
#: Of a lease without a consumer, one every two seconds: twice the time within which another consumer would start.
RENEWALS = 6
#: Whether the consumer has ended before the lease is held again is a race, which a busy machine may decide for it.
ATTEMPTS = 5


async def test_a_lease_that_was_renewed_late_is_held_and_not_read(scene: EmulatorScene, stream_client: Path) -> None:
    await create_table(scene)
    await scene.put(KEYS, [0])

    async def counter() -> int:
        found = await scene.caller.call(TABLE_OPERATIONS["ListStream"], pb.ListStreamRequest(table_name=TABLE))
        [lease] = (await LeaseTable(scene.caller, STATUS).list(found[0].streams[0].stream_id)).leases
        return lease.counter

    async def is_stuck(attempt: int) -> bool:
        """Answer one of its checkpoints late, and tell whether its lease is then renewed without a consumer."""
        stops, starts = len(worker.of("stop")), len(worker.of("start"))
        scene.emulator.add_fault(FaultRule("UpdateRow", count=1, latency=LEASE + LATER))
        await scene.put(KEYS, [2 * attempt - 1])
        await until(lambda: len(worker.of("stop")) > stops, 120, "the consumer is shut down")
        before = await counter()
        await scene.put(KEYS, [2 * attempt])

        async def is_renewed() -> bool:
            return len(worker.of("start")) > starts or await counter() >= before + RENEWALS

        await until(is_renewed, 120, "another consumer starts, or the lease is renewed for longer than it lasts")
        return len(worker.of("start")) == starts

    def has_read(number: int) -> bool:
        assert worker.of("error") == []
        return worker.written.keys() >= set(KEYS) and all(number in worker.written[key] for key in KEYS)

    times = {"lease-millis": round(1000 * LEASE), "round-millis": round(1000 * ROUND), "idle-millis": 300}
    async with running(stream_client, scene.emulator.endpoint, **times) as worker:
        await until(lambda: worker.has(len(KEYS)), 120, "the first records arrive")
        for attempt in range(1, ATTEMPTS + 1):
            if await is_stuck(attempt):
                break
            await until(partial(has_read, 2 * attempt), 120, "another consumer reads on")
        else:
            pytest.fail(f"another consumer started after each of {ATTEMPTS} late answers")
        assert {reason for _, reason in worker.of("stop")} == {"ZOMBIE"}
        assert not has_read(2 * attempt)
