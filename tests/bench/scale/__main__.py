"""Measure how many objects one operator serves.

    python -m tests.bench.scale [--objects 1000 3000 10000] [--steady-seconds 180] [--output bench.json]

For each number of objects, with a real API server: a start with new objects until all are Ready, the steady state, one
change while all others are quiet, and the death of the leader beside a replica. The goals are those of 1,000 objects.
API server, service, workers and operator share the machine, so a start takes longer than where each has its own. Reads
include the watches, which are opened again every 25 s: with few objects these are most of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import yaml

from ots_tunnel_operator.kube.lease import LEASE_SECONDS
from tests.bench.emulator_target import Goal
from tests.bench.figures import add_to_file
from tests.bench.scale.cluster import Api
from tests.bench.scale.controller import Controller
from tests.bench.scale.fleet import Fleet, logged, until
from tests.bench.scale.readings import AuditLog, Neighbours, Usage
from tests.bench.scale.service import Place, emulator_for, https, make_certificate, trust
from tests.bench.scale.workers import Workers
from tests.bench.tables.goals import print_goals
from tests.operator.scenes.operator_process import OperatorProcess
from tests.support.kube.api_server import ROOT, ApiServer, missing_program, running_api_server

#: The number of objects that the goals are about.
GOALS_AT = 1_000
HOME = "operator-home"
ACCOUNT = f"system:serviceaccount:{HOME}:operator"
POLICY = ROOT / "tests" / "chart" / "audit-policy.yaml"
#: Controllers of Kubernetes that would make pods as well.
CONTROLLERS = "--controllers=*,-deployment-controller,-replicaset-controller,-disruption-controller"
#: Seconds without a write of any status after which the fleet is at rest.
REST_SECONDS = 45.0
#: Changes that are measured one after the other; the slowest one counts.
CHANGES = 5
#: Seconds for a wait, and for each object in addition.
PATIENCE, PATIENCE_OF_OBJECT = 300.0, 1.0


class Measurement:
    """One number of objects.

    Args:
        objects: how many.
        steady_seconds: how long the steady state is watched.
        own_secrets: see `Fleet`.
        folder: for logs and keys.
    """

    def __init__(self, objects: int, steady_seconds: float, folder: Path, *, own_secrets: bool) -> None:
        self._objects = objects
        self._steady = steady_seconds
        self._folder = folder
        self._own_secrets = own_secrets
        self._patience = PATIENCE + PATIENCE_OF_OBJECT * objects
        self.goals: list[Goal] = []

    async def run(self) -> None:
        """Measure."""
        places = [Place(number) for number in range(self._objects)]
        made = make_certificate(self._folder)
        # the operator's own client trusts the service by this variable
        os.environ["SSL_CERT_FILE"] = str(made.certificate)
        modules = trust(self._folder, made)
        os.environ["CONTROLLER_FLAGS"] = CONTROLLERS
        with ExitStack() as stack:
            server = stack.enter_context(
                running_api_server(self._folder / "server", f"--audit-policy-file={POLICY}", "--audit-log-maxsize=8000")
            )
            server.install_definitions(ROOT / "crds")
            account = operator_account(server, self._folder / "operator.kubeconfig")
            self._server = server.kubeconfig.parent
            audit = AuditLog(self._server / "audit.log", ACCOUNT)
            first, second = (
                stack.enter_context(
                    OperatorProcess(account, None, self._log(name), "--lease-namespace", HOME, modules=modules)
                )
                for name in ("first", "second")
            )
            async with AsyncExitStack() as closing:
                emulator = await closing.enter_async_context(emulator_for(places))
                endpoint = await closing.enter_async_context(https(emulator, made))
                api = await closing.enter_async_context(Api(server.kubeconfig))
                workers = Workers(emulator.endpoint)
                await closing.enter_async_context(workers.serving())
                self._fleet = Fleet(api, places, endpoint, own_secrets=self._own_secrets)
                self._controller = Controller(api, workers)
                self._running = [asyncio.create_task(each.run()) for each in (self._fleet, self._controller)]
                try:
                    say(f"{self._objects} objects are created")
                    await self._fleet.create(emulator)
                    await self._start(first, audit)
                    await self._rest(first, audit)
                    await self._change(places)
                    await self._fail_over(first, second, places[-1])
                finally:
                    for task in self._running:
                        task.cancel()
                    await asyncio.gather(*self._running, return_exceptions=True)

    async def _start(self, operator: OperatorProcess, audit: AuditLog) -> None:
        neighbours = Neighbours(self._server)
        began, self._operator = time.monotonic(), operator
        operator.start()
        usage = Usage(operator.pid)
        step = max(1, self._objects // 10)
        for number in sorted({*range(step, self._objects, step), self._objects}):
            await self._until(lambda number=number: self._fleet.ready >= number, f"{number} objects are Ready")
            say(f"{number} of {self._objects} are Ready after {time.monotonic() - began:.0f} s")
        used = usage.read()
        say(f"cores beside the operator: {neighbours}")
        self._add("start with new objects until all are Ready", time.monotonic() - began, 180, "s")
        self._add("CPU of this start", used.cores, None, "cores")
        self._add("memory of this start, at most", used.peak_mb, 300, "MB")
        calls = await asyncio.to_thread(audit.calls)
        say(f"calls: {calls}")
        self._add("API writes of this start", calls.writes.total() / self._objects, None, "an object")

    async def _rest(self, operator: OperatorProcess, audit: AuditLog) -> None:
        await self._until(lambda: time.monotonic() - self._fleet.last_change > REST_SECONDS, "the fleet is at rest")
        await asyncio.to_thread(audit.restart)
        usage, neighbours = Usage(operator.pid), Neighbours(self._server)
        say(f"steady state, {self._steady:.0f} s")
        await asyncio.sleep(self._steady)
        used, calls = usage.read(), await asyncio.to_thread(audit.calls)
        say(f"cores beside the operator: {neighbours}; calls: {calls}")
        self._add("steady, API writes besides the Lease", calls.writes.total(), 0, "writes")
        minutes = self._steady / 60
        self._add("steady, API reads", calls.reads.total() / minutes / self._objects, 2, "a minute and object")
        self._add("steady, memory", used.resident_mb, 300, "MB")
        self._add("steady, CPU", used.cores, 0.3, "cores")

    async def _change(self, places: list[Place]) -> None:
        chosen = places[:: max(1, len(places) // CHANGES)][:CHANGES]
        taken = [await self._scaled(place, 2) for place in chosen]
        self._add("one change until it is acted on, slowest of 5", max(taken), 2, "s")

    async def _fail_over(self, leader: OperatorProcess, standby: OperatorProcess, place: Place) -> None:
        standby.start()
        usage = Usage(standby.pid)
        await self._until(lambda: logged(self._log("second"), "standing_by"), "the replica waits")
        self._operator = standby
        os.kill(leader.pid, signal.SIGKILL)
        taken = await self._scaled(place, 3)
        self._add("a change after the leader was killed", taken, LEASE_SECONDS + 10, "s")
        await self._until(lambda: self._fleet.ready == self._objects, "all are Ready again")
        await self._until(lambda: time.monotonic() - self._fleet.last_change > REST_SECONDS, "the fleet is at rest")
        self._add("memory of the replica that took over, at most", usage.read().peak_mb, None, "MB")
        assert standby.stop() == 0

    async def _scaled(self, place: Place, replicas: int) -> float:
        """Seconds from an edit until the Deployment asks for this many workers."""
        await self._fleet.scale(place, replicas)
        asked = self._controller.asked
        return await self._until(lambda: asked.get(place.name) == replicas, f"{place.name} has {replicas} workers")

    async def _until(self, reached: object, what: str) -> float:
        assert callable(reached)

        def is_reached() -> bool:
            self._check()
            return bool(reached())

        return await until(is_reached, self._patience, what, self._explain)

    def _check(self) -> None:
        """Raise what has ended a part of this process."""
        for task in self._running:
            if task.done():
                task.result()
        if self._controller.failure is not None:
            raise self._controller.failure
        if not self._operator.is_running:
            raise RuntimeError(f"the operator has ended: {self._operator.last_output()}")

    def _explain(self) -> str:
        texts = "\n".join(f"{name} {text}" for name, text in sorted(self._fleet.texts.items())[:5])
        return f"{self._fleet.ready} are Ready, others:\n{texts}\n{self._log('first').read_text()[-3000:]}"

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _add(self, name: str, ours: float, goal: float | None, unit: str) -> None:
        at_goals = goal if self._objects == GOALS_AT and not self._own_secrets else None
        secrets = ", each with its own Secrets" if self._own_secrets else ""
        self.goals.append(
            Goal(f"operator, {self._objects:,} objects{secrets}: {name}", ours, at_goals, unit, at_least=False)
        )
        say(f"{name}: {ours:.3f} {unit}")


def operator_account(server: ApiServer, path: Path) -> Path:
    """A kubeconfig of an account that the audit log tells from all others."""
    server.must("create", "namespace", HOME)
    server.must("-n", HOME, "create", "serviceaccount", "operator")
    server.must(
        "create", "clusterrolebinding", "operator", "--clusterrole=cluster-admin", f"--serviceaccount={HOME}:operator"
    )
    document = yaml.safe_load(server.kubeconfig.read_text())
    token = server.must("-n", HOME, "create", "token", "operator", "--duration=12h").strip()
    document["users"][0]["user"] = {"token": token}
    path.write_text(yaml.safe_dump(document))
    return path


def main() -> int:
    """Measure, print, write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--objects", type=int, nargs="+", default=[1_000], help="numbers of objects (default 1000)")
    parser.add_argument("--steady-seconds", type=float, default=180.0, help="how long the steady state is watched")
    parser.add_argument(
        "--own-secrets", action="store_true", help="two Secrets for each object, not for each namespace"
    )
    parser.add_argument("--output", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    if reason := missing_program("kubeone", "kubectl"):
        print(reason, file=sys.stderr)
        return 2
    # so that the processes end, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for objects in options.objects:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            measurement = Measurement(objects, options.steady_seconds, Path(folder), own_secrets=options.own_secrets)
            asyncio.run(measurement.run())
        load = f"load average {os.getloadavg()[0]:.1f}"
        print_goals(measurement.goals, "The operator beside its goals", f"{objects:,} objects, {load}")
        add_to_file(options.output, (goal.document() for goal in measurement.goals))
    return 0


def say(text: str) -> None:
    """Tell the progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
