"""What counts as a call of the operator, and where the objects of a measurement are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.scale import readings
from tests.bench.scale.readings import AuditLog
from tests.bench.scale.service import OBJECTS_OF_INSTANCE, Place

USER = "system:serviceaccount:home:operator"


@pytest.fixture(autouse=True)
def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "FLUSH_SECONDS", 0.0)


def entry(number: int, verb: str, resource: str, *, stage: str = "ResponseComplete", user: str = USER) -> str:
    about = {"resource": resource.partition("/")[0], "subresource": resource.partition("/")[2]}
    line = {"auditID": str(number), "verb": verb, "stage": stage, "objectRef": about, "user": {"username": user}}
    return json.dumps(line) + "\n"


def test_calls_of_the_operator_since_the_start_count_once_and_the_lease_does_not(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text(entry(1, "patch", "deployments"))
    log = AuditLog(path, USER)
    with path.open("a") as lines:
        lines.write(entry(2, "watch", "pods", stage="ResponseStarted"))
        lines.write(entry(2, "watch", "pods"))
        lines.write(entry(3, "watch", "secrets"))  # opened before
        lines.write(entry(4, "get", "leases") + entry(5, "update", "leases"))
        lines.write(entry(6, "patch", "tablestoretunnels/status"))
        lines.write(entry(7, "patch", "deployments/status", user="somebody"))
        lines.write(entry(8, "get", "configmaps").strip())  # still being written

    found = log.calls()

    assert dict(found.writes) == {"patch tablestoretunnels/status": 1}
    assert dict(found.reads) == {"watch pods": 1}


def test_the_objects_of_a_namespace_share_an_instance() -> None:
    last, next_one = Place(OBJECTS_OF_INSTANCE - 1), Place(OBJECTS_OF_INSTANCE)

    assert (last.namespace, last.instance) == ("team-000", "shop-000")
    assert (next_one.namespace, next_one.instance) == ("team-001", "shop-001")
    assert len({Place(number).destination for number in range(200)}) == 200
