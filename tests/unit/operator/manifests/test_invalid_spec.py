"""What is said of a spec before anything is created, where the API server's rules cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from ots_tunnel_operator.manifests.invalid_spec import find_invalid_spec
from ots_tunnel_operator.plan.actions import TryTemplate
from ots_tunnel_operator.reasons import Reason
from ots_tunnel_operator.world.absence import Missing
from tests.support.operator.objects import EMULATOR
from tests.support.operator.worlds import planned, recorded, resource, world

FOLDER: dict[str, Any] = {"sink": {"files": {"url": "file:///data/orders%20new"}}}

CLAIM: dict[str, Any] = {"name": "data", "persistentVolumeClaim": {"claimName": "orders"}}


def template(mount: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    container = {"name": "worker", "volumeMounts": [mount or {"name": "data", "mountPath": "/data/"}]}
    spec = {"containers": [container], "volumes": [CLAIM]} | changes
    return FOLDER | {"workers": {"podTemplate": {"spec": spec}}}


@pytest.mark.parametrize(
    "changes",
    [
        template(),
        template({"name": "data", "mountPath": "/data/orders new"}),
        template(volumes=[{"name": "data", "hostPath": {"path": "/mnt"}, "emptyDir": None}]),
        {},
        {"sink": {"files": {"url": "s3://shop/", "credentials": {"secretRef": {"name": "keys"}}}}},
        # Spark copies, and no worker is used
        {"source__tunnel__type": "BaseData", "engine__baseData": "Spark"},
    ],
)
def test_a_spec_that_workers_can_carry_out_has_no_problem(changes: dict[str, Any]) -> None:
    assert find_invalid_spec(resource(**changes).object) is None


@pytest.mark.parametrize("kind", ["BaseData", "BaseAndStream"])
def test_a_copy_of_a_table_into_itself_by_spark_is_named_before_anything_is_created(kind: str) -> None:
    """The API server compares the endpoints as texts: a slash at the end of one is another text."""
    same = {"sink__tablestore__endpoint": f"{EMULATOR}/", "sink__tablestore__table": "flights"}
    of = resource(**same, source__tunnel__type=kind, engine__baseData="Spark")
    found = world(of, destination=Missing(), tunnel=Missing(), pods=(), children={})

    problem = find_invalid_spec(of.object)
    assert problem is not None
    assert problem.reason is Reason.INVALID_SPEC
    assert "copying a table into itself never ends" in problem.message
    assert (planned(found).problem, planned(found).actions) == (problem, ())


@pytest.mark.parametrize(
    "changes",
    [
        FOLDER,
        template({"name": "data", "mountPath": "/dat"}),
        template({"name": "data", "mountPath": "/"}),
        template(volumes=[{"name": "other", "emptyDir": {}}]),
        template(containers=[{"name": "sidecar", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]),
        # templates are not validated by the API server
        template(containers="worker"),
        FOLDER | {"workers": {"podTemplate": {"spec": [1]}}},
    ],
)
def test_a_folder_without_a_volume_is_named(changes: dict[str, Any]) -> None:
    problem = find_invalid_spec(resource(**changes).object)

    assert problem is not None
    assert (problem.reason, problem.conditions) == (Reason.INVALID_SPEC, ("SinkReady",))
    assert problem.message == (
        "spec.sink.files.url 'file:///data/orders%20new': no volume is mounted at /data/orders new or above it: give "
        "spec.workers.podTemplate a volume, and its container 'worker' a volumeMount of it that may be written"
    )


@pytest.mark.parametrize(
    "volume",
    [
        {"name": "data", "emptyDir": {}},
        {"name": "data", "emptyDir": {"medium": "Memory"}},
        # what the API server makes of a volume without a source
        {"name": "data"},
        {"name": "data", "ephemeral": {"volumeClaimTemplate": {}}},
    ],
)
def test_a_folder_on_a_volume_that_goes_with_its_pod_is_refused(volume: dict[str, Any]) -> None:
    problem = find_invalid_spec(resource(**template(volumes=[volume])).object)

    assert problem is not None
    assert (problem.reason, problem.conditions) == (Reason.INVALID_SPEC, ("SinkReady",))
    assert problem.message == (
        "spec.sink.files.url 'file:///data/orders%20new': volume 'data' of spec.workers.podTemplate, mounted at /data, "
        "is gone with its pod, and the files with it, although their checkpoints remain: use a persistentVolumeClaim "
        "(ReadWriteMany for several workers), or a bucket, s3://bucket/prefix"
    )


@pytest.mark.parametrize(("deepest", "is_refused"), [("scratch", True), ("data", False)])
def test_the_volume_that_is_mounted_deepest_decides(deepest: str, is_refused: bool) -> None:
    other = {"data": "scratch", "scratch": "data"}[deepest]
    mounts = [{"name": deepest, "mountPath": "/data/orders new"}, {"name": other, "mountPath": "/data"}]
    containers = [{"name": "worker", "volumeMounts": mounts}]
    volumes = [CLAIM, {"name": "scratch", "emptyDir": {}}]
    problem = find_invalid_spec(resource(**template(containers=containers, volumes=volumes)).object)

    assert (problem is not None) == is_refused


@pytest.mark.parametrize(
    ("mount", "volume"),
    [
        ({"readOnly": True}, CLAIM),
        ({}, {"name": "data", "persistentVolumeClaim": {"claimName": "orders", "readOnly": True}}),
        ({}, {"name": "data", "configMap": {"name": "orders"}}),
    ],
)
def test_a_volume_that_may_not_be_written_is_refused_also_below_one_that_may(
    mount: dict[str, Any], volume: dict[str, Any]
) -> None:
    mounts = [{"name": "data", "mountPath": "/data/orders new", **mount}, {"name": "whole", "mountPath": "/data"}]
    containers = [{"name": "worker", "volumeMounts": mounts}]
    whole = {"name": "whole", "persistentVolumeClaim": {"claimName": "all"}}
    problem = find_invalid_spec(resource(**template(containers=containers, volumes=[volume, whole])).object)

    assert problem is not None
    assert (problem.reason, problem.conditions) == (Reason.INVALID_SPEC, ("SinkReady",))
    assert problem.message.startswith(
        "spec.sink.files.url 'file:///data/orders%20new': spec.workers.podTemplate: volume 'data', mounted at "
        "/data/orders new, may not be written: take readOnly out"
    )


def test_dead_letters_on_an_empty_dir_are_refused() -> None:
    delivery = {"onPermanentError": "DeadLetter", "deadLetter": {"files": {"url": "file:///data/refused"}}}
    changes = {"delivery": delivery, "workers": template(volumes=[{"name": "data", "emptyDir": {}}])["workers"]}
    problem = find_invalid_spec(resource(**changes).object)

    assert problem is not None
    assert problem.message.startswith("spec.delivery.deadLetter.files.url 'file:///data/refused': volume 'data'")


@pytest.mark.parametrize(
    ("delivery", "says"),
    [
        (
            {"filter": {"keyRange": {"begin": [{"string": "b"}], "end": [{"string": "a"}]}}},
            "delivery.filter.keyRange.end: found 'a', allowed is above 'b' of begin",
        ),
        (
            {"filter": {"keyRange": {"begin": [{"string": "b"}], "end": [{"integer": 5}]}}},
            "delivery.filter.keyRange.end: found INTEGER beside STRING of begin",
        ),
    ],
)
def test_a_range_that_holds_nothing_is_named(delivery: dict[str, Any], says: str) -> None:
    problem = find_invalid_spec(resource(delivery=delivery).object)

    assert problem is not None
    assert says in problem.message


@pytest.mark.parametrize(
    ("url", "shown"), [("file:///data/a#b", "file:///data/a#b"), ("file:///data?b", "file:///data?***")]
)
def test_a_folder_whose_name_would_be_cut_is_refused(url: str, shown: str) -> None:
    # stored before the API server refused it
    problem = find_invalid_spec(resource(**template() | {"sink": {"files": {"url": url}}}).object)

    assert problem is not None
    assert problem.reason is Reason.INVALID_SPEC
    assert f"sink.files.url: found {shown!r}, allowed is file:///path" in problem.message


def test_a_place_for_dead_letters_needs_a_volume_too() -> None:
    delivery = {"onPermanentError": "DeadLetter", "deadLetter": {"files": {"url": "file:///refused"}}}
    problem = find_invalid_spec(resource(delivery=delivery).object)

    assert problem is not None
    assert problem.message.startswith("spec.delivery.deadLetter.files.url 'file:///refused': no volume is mounted at")


def test_nothing_is_created_for_a_document_that_no_worker_accepts() -> None:
    # the same table in another spelling of its endpoint
    changes = {"sink__tablestore__table": "flights", "sink__tablestore__endpoint": "http://ots-emulator:8080/"}
    new = world(resource(**changes), tunnel=Missing(), destination=Missing(), children={}, pods=())

    plan = planned(new)

    assert plan.problem is not None
    assert plan.problem.reason is Reason.INVALID_SPEC
    assert "sink.tablestore.table: found 'flights', the source itself" in plan.problem.message
    assert plan.actions == ()


def test_it_is_looked_for_once_in_a_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    found = world(resource(**FOLDER))
    first = planned(found).problem
    monkeypatch.setattr("ots_tunnel_operator.assess.preflight.find_invalid_spec", None)

    assert planned(found).problem is first is not None


@pytest.mark.parametrize(
    "anything",
    [
        {"spec": 5},
        {"metadata": 5},
        {"spec": {"containers": [{"name": ["worker"]}]}},
        {"spec": {"containers": [{"name": "worker", "env": [{"name": {}}], "ports": [{"containerPort": []}]}]}},
        {"spec": {"volumes": [{"name": ["data"]}]}},
        {
            "spec": {
                "containers": [{"name": "worker", "volumeMounts": [{"name": ["data"], "mountPath": "/data"}]}],
                "volumes": [{"name": ["data"], "emptyDir": {}}],
            }
        },
    ],
)
def test_what_no_template_has_is_for_the_api_server_to_name(anything: dict[str, Any]) -> None:
    """The definition accepts anything there: the operator fails on none of it."""
    into_a_table = planned(world(resource(recorded(), workers={"podTemplate": anything})))
    into_a_folder = find_invalid_spec(resource(**FOLDER, workers={"podTemplate": anything}).object)

    assert [type(action) for action in into_a_table.actions].count(TryTemplate) == 1
    assert into_a_folder is not None
    assert "no volume is mounted" in into_a_folder.message


def nested(levels: int) -> Any:
    found: Any = {}
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.parametrize("levels", [50, 9000])
def test_a_template_that_is_nested_too_deeply_is_named_and_not_rendered(levels: int) -> None:
    of = resource(recorded(), workers={"podTemplate": {"spec": nested(levels)}})

    problem = planned(world(of)).problem

    assert problem is not None
    assert (problem.reason, problem.leaves_workers) == (Reason.INVALID_SPEC, True)
    assert "spec.workers.podTemplate: found fields nested more than 50 levels deep, allowed are 50" in problem.message


@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize("kind", ["BaseData", "BaseAndStream"])
def test_so_is_one_of_a_copy_by_spark(kind: str, role: str) -> None:
    of = resource(source__tunnel__type=kind, engine={"baseData": "Spark"}, spark={role: {"podTemplate": nested(9000)}})

    problem = find_invalid_spec(of.object)

    assert problem is not None
    assert f"spec.spark.{role}.podTemplate: found fields nested more than 50 levels deep" in problem.message


def test_templates_as_deep_as_those_of_kubernetes_are_taken() -> None:
    assert find_invalid_spec(resource(workers={"podTemplate": {"spec": nested(48)}}).object) is None
