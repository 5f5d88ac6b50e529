"""A model of the Spark operator: it submits applications, follows their drivers, and repeats what has failed.

NEW -> SUBMITTED -> RUNNING -> SUCCEEDING -> COMPLETED
       SUBMISSION_FAILED -> SUBMITTED, or FAILED     RUNNING -> FAILING -> PENDING_RERUN, or FAILED
any -> SUSPENDING -> SUSPENDED -> RESUMING -> SUBMITTED
any -> INVALIDATING -> PENDING_RERUN -> SUBMITTED, where the spec was changed
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ots_tunnel_operator.assess.spark.application_state import AppState
from ots_tunnel_operator.times import timestamp
from tests.simulation.apiserver.api import Request
from tests.simulation.apiserver.store import Manifest
from tests.simulation.spark.attempt import LABEL, Attempt

if TYPE_CHECKING:
    from tests.simulation.spark.fleet import SparkFleet

_RUNS = frozenset((AppState.SUBMITTED, AppState.RUNNING, AppState.SUCCEEDING, AppState.FAILING))
_ENDED = frozenset((AppState.COMPLETED, AppState.FAILED))
#: What an application loses whose spec was changed: nothing tells of its earlier attempts.
_FORGOTTEN: Mapping[str, Any] = {
    "executionAttempts": 0,
    "submissionAttempts": 0,
    "lastSubmissionAttemptTime": None,
    "terminationTime": None,
    "driverInfo": None,
    "executorState": None,
}


class SparkOperator:
    """Handles the SparkApplications of a fleet."""

    def __init__(self, fleet: SparkFleet, seed: str) -> None:
        self._fleet = fleet
        self._chance = random.Random(f"spark:{seed}")
        self.attempts: dict[str, Attempt] = {}
        self._specs: dict[str, Any] = {}
        self._since: dict[str, float] = {}
        self.away_until = 0.0
        #: Until when the drivers' calls to the API server fail.
        self.api_away_until = 0.0
        #: Submissions that fail.
        self.refused = 0
        #: What befalls the executors that send rows next, one after the other: `kill` or `vanish`.
        self.strikes: deque[str] = deque()

    async def run(self) -> None:
        """Handle applications until cancelled."""
        while True:
            await asyncio.sleep(self._chance.uniform(0.3, 2))
            self._collect()
            if self._fleet.loop.now < self.away_until:
                continue
            for app in self._fleet.store.all("SparkApplication", "shop"):
                self._step(app)

    def attempt(self) -> Attempt | None:
        """The attempt that was begun last."""
        return next(reversed(self.attempts.values()), None)

    def cut_off(self) -> None:
        """The nodes of a running attempt are lost: nobody sees it again."""
        attempt = self.attempt()
        if attempt is None or not attempt.is_running or attempt.code is not None:
            return
        attempt.cut_off()
        self.attempts = {uid: other for uid, other in self.attempts.items() if other is not attempt}

    def _collect(self) -> None:
        """End what a deletion asks for: applications with their pods, and single pods."""
        store = self._fleet.store
        known = {app["metadata"]["uid"] for app in store.all("SparkApplication", "shop")}
        for uid in [uid for uid in self.attempts if uid not in known]:
            self.attempts.pop(uid).stop()
        for pod in list(store.all("Pod", "shop")):
            metadata = pod["metadata"]
            if LABEL in (metadata.get("labels") or {}) and metadata.get("deletionTimestamp"):
                for attempt in self.attempts.values():
                    attempt.kill(metadata["name"])
                self._fleet.api.finalize(("Pod", "shop", metadata["name"]))

    def _step(self, app: Manifest) -> None:
        uid, status = app["metadata"]["uid"], app.get("status") or {}
        state = AppState((status.get("applicationState") or {}).get("state") or "")
        attempt, spec = self.attempts.get(uid), {**app["spec"], "suspend": False}
        wants_rest = bool(app["spec"].get("suspend"))
        if wants_rest and state not in (*_ENDED, AppState.SUSPENDING, AppState.SUSPENDED):
            self._stop(uid)
            self._turn(app, AppState.SUSPENDING)
        elif state in (*_RUNS, *_ENDED) and self._specs.get(uid, spec) != spec:
            self._stop(uid)
            self._turn(app, AppState.INVALIDATING)
        else:
            self._go_on(app, state, attempt, wants_rest)

    def _go_on(self, app: Manifest, state: AppState, attempt: Attempt | None, wants_rest: bool) -> None:
        uid, status = app["metadata"]["uid"], app.get("status") or {}
        policy = app["spec"]["restartPolicy"]
        match state:
            case AppState.NEW | AppState.PENDING_RERUN | AppState.RESUMING:
                self._submit(app, policy)
            case AppState.SUBMISSION_FAILED if self._is_over(uid, policy["onSubmissionFailureRetryInterval"]):
                self._submit(app, policy)
            case AppState.SUSPENDING:
                self._turn(app, AppState.SUSPENDED)
            case AppState.SUSPENDED if not wants_rest:
                self._turn(app, AppState.RESUMING)
            case AppState.INVALIDATING:
                self._turn(app, AppState.PENDING_RERUN, **_FORGOTTEN)
            case AppState.SUBMITTED | AppState.RUNNING:
                self._follow(app, state, attempt)
            case AppState.SUCCEEDING:
                self._turn(app, AppState.COMPLETED)
            case AppState.FAILING if status.get("executionAttempts", 0) > policy["onFailureRetries"]:
                self._turn(app, AppState.FAILED)
            case AppState.FAILING if self._is_over(uid, policy["onFailureRetryInterval"]):
                self._stop(uid)
                self._turn(app, AppState.PENDING_RERUN)

    def _follow(self, app: Manifest, state: AppState, attempt: Attempt | None) -> None:
        """Look after the pods of an attempt."""
        if attempt is None or attempt.code is not None:
            is_done = attempt is not None and attempt.code == 0
            error = "" if is_done else "driver container failed with ExitCode: 1, Reason: Error"
            self._turn(app, AppState.SUCCEEDING if is_done else AppState.FAILING, error=error, is_end=True)
            return
        is_new = (app.get("status") or {}).get("executorState") != attempt.executors
        if attempt.is_running and (state is AppState.SUBMITTED or is_new):
            self._turn(app, AppState.RUNNING)

    def _submit(self, app: Manifest, policy: Manifest) -> None:
        uid, status = app["metadata"]["uid"], app.get("status") or {}
        self._specs[uid] = {**app["spec"], "suspend": False}
        if self.refused:
            self.refused -= 1
            tries = int(status.get("submissionAttempts") or 0) + 1
            is_last = tries > policy["onSubmissionFailureRetries"]
            state = AppState.FAILED if is_last else AppState.SUBMISSION_FAILED
            self._turn(app, state, error="failed to run spark-submit: exit status 1", submissionAttempts=tries)
            return
        number = int(status.get("executionAttempts") or 0) + 1
        self._stop(uid)
        self.attempts[uid] = Attempt(self._fleet, app, number, self._chance)
        driver = {"podName": self.attempts[uid].driver}
        now = timestamp(self._fleet.service.clock.now())
        changes = {"executionAttempts": number, "driverInfo": driver, "lastSubmissionAttemptTime": now}
        self._turn(app, AppState.SUBMITTED, terminationTime=None, submissionAttempts=0, **changes)

    def _turn(self, app: Manifest, state: AppState, *, error: str = "", is_end: bool = False, **changes: Any) -> None:
        metadata = app["metadata"]
        attempt = self.attempts.get(metadata["uid"])
        self._since[metadata["uid"]] = self._fleet.loop.now
        status = {"applicationState": {"state": str(state), "errorMessage": error}, **changes}
        if attempt is not None:
            status["executorState"] = {
                **dict.fromkeys((app.get("status") or {}).get("executorState") or {}),
                **attempt.executors,
            }
        if is_end:
            status["terminationTime"] = timestamp(self._fleet.service.clock.now())
        path = f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/shop/sparkapplications/{metadata['name']}/status"
        self._fleet.story.tell("spark", "%s is %s", metadata["name"], state)
        content = "application/merge-patch+json"
        self._fleet.api.call(Request("PATCH", path, {"status": status}, content=content, manager="spark-operator"))

    def _stop(self, uid: str) -> None:
        if (attempt := self.attempts.pop(uid, None)) is not None:
            attempt.stop()

    def _is_over(self, uid: str, seconds: float) -> bool:
        return self._fleet.loop.now - self._since.get(uid, 0.0) >= seconds
