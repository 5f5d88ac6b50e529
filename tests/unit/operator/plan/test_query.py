"""The next steps of an object whose changes a query of Spark follows, one test per situation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from ots_tunnel.model import ChannelId, ChannelStatus, TunnelType
from ots_tunnel_operator import names
from ots_tunnel_operator.assess.assessment import assess
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, SPARK_APPLICATION
from ots_tunnel_operator.manifests.spark.query_application import document_hash
from ots_tunnel_operator.plan.actions import (
    ApplyObject,
    ApplyToExisting,
    CreateTunnel,
    DeleteObject,
    RecordStatus,
)
from ots_tunnel_operator.plan.query import plan_query, query_objects
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.world.absence import Failure, Missing
from ots_tunnel_operator.world.resource import Resource
from ots_tunnel_operator.world.service import Tunnel
from ots_tunnel_operator.world.world import Competitor, World
from tests.support.operator.query_worlds import (
    BY_QUERY,
    CLIENT,
    DRIVER,
    DRIVER_PART,
    EXECUTOR_PART,
    FREE,
    NAME,
    PLACE,
    WELL,
    mounting,
    query_app,
    query_record,
    query_resource,
    query_status,
    query_world,
)
from tests.support.operator.worlds import FRESH, NOW, SETTINGS, TUNNEL_ID, channel, description, planned, reported

OBJECTS = [
    "ServiceAccount/flights-copy-spark",
    "ServiceAccount/flights-copy-spark-executors",
    "Role/flights-copy-spark",
    "RoleBinding/flights-copy-spark",
    "ConfigMap/flights-copy-stream-config",
    "ConfigMap/flights-copy-stream",
    "SparkApplication/flights-copy-stream",
]
BROKEN = replace(WELL, error="the folder belongs to another tunnel", is_final=True)
EXPIRED = Tunnel(replace(FREE.description, tunnel=replace(FREE.description.tunnel, expired=True)))
BUSY = Failure(Problem(Reason.SERVICE_UNAVAILABLE, "busy", ("TunnelReady",)))


def steps(found: World) -> list[str]:
    return [
        f"{action.manifest['kind']}/{action.manifest['metadata']['name']}"
        if isinstance(action, ApplyObject)
        else type(action).__name__
        for action in planned(found).actions
    ]


def applied(found: World) -> dict[str, Any]:
    manifests = [action.manifest for action in planned(found).actions if isinstance(action, ApplyObject)]
    return next(item for item in manifests if item["kind"] == "SparkApplication")


def conditions(found: World) -> dict[str, tuple[str, str]]:
    return {item["type"]: (item["status"], item["reason"]) for item in reported(found)["conditions"]}


def test_a_new_object_gets_its_tunnel_and_then_its_query() -> None:
    fresh = query_world({}, query_resource({}), tunnel=Missing(), query_pods=())
    made = query_world({}, query_resource({}), tunnel=FREE, query_pods=())
    ready = query_world({}, query_resource(query_status(filesPlace=None)), tunnel=FREE, query_pods=())

    assert steps(fresh) == ["RecordStatus", "CreateTunnel"]
    assert any(isinstance(action, CreateTunnel) for action in planned(fresh).actions)
    assert steps(made) == ["RecordStatus"]
    # the place of the files is recorded before the query can write there
    assert steps(ready) == ["RecordStatus", *OBJECTS]
    assert planned(ready).actions[0] == RecordStatus({"filesPlace": PLACE})
    assert planned(ready).wait is not None
    assert conditions(ready)["Ready"] == ("False", "StartingQuery")


def test_a_query_that_follows_the_tunnel_is_ready() -> None:
    found = query_world()
    status, plan = reported(found), planned(found)

    assert (plan.wait, plan.problem, plan.replicas) == (None, None, 0)
    assert steps(found) == OBJECTS
    assert status["phase"] == "Streaming"
    assert conditions(found) == {
        "Ready": ("True", "Consuming"),
        "Progressing": ("False", "AsExpected"),
        "Degraded": ("False", "AsExpected"),
        "Stalled": ("False", "AsExpected"),
        "CredentialsValid": ("True", "Authenticated"),
        "SinkReady": ("True", "SinkAvailable"),
        "TunnelReady": ("True", "TunnelAvailable"),
        "WorkersAvailable": ("True", "NoWorkersWanted"),
        "Rebalancing": ("False", "Settled"),
        "Suspended": ("False", "NotSuspended"),
        "Completed": ("False", "StreamOpen"),
    }
    assert status["spark"] == {
        "application": NAME,
        "state": "RUNNING",
        "batchId": 7,
        "rowsPerSecond": 120,
        "lagSeconds": 0,
        "recordedTime": "2027-01-15T07:58:20Z",
    }
    assert status["lag"]["seconds"] == 0
    assert status["lag"]["caughtUp"] is True
    assert status["lag"]["slowest"] == []
    assert status["throughput"]["rowsPerSecond"] == 120
    assert (status["replicas"], status["filesPlace"]) == (0, PLACE)
    assert status["autoscaling"] == {"desiredReplicas": 0}


def test_figures_of_a_driver_that_does_not_run_are_not_told() -> None:
    status = reported(query_world(query_app("SUBMITTED") | query_record()))

    assert status["spark"] == {"application": NAME, "state": "SUBMITTED"}
    assert "rowsPerSecond" not in status["throughput"]
    assert "seconds" not in status.get("lag", {})


@pytest.mark.parametrize(
    ("changes", "ready"),
    [
        ({"tunnel": FREE}, ("False", "ChannelsUnowned")),
        ({"tunnel": BUSY}, ("Unknown", "ServiceUnavailable")),
        ({"children": query_app("SUBMITTED")}, ("False", "StartingQuery")),
        (
            {"children": query_app("RUNNING") | query_record(replace(WELL, lag_seconds=None))},
            ("Unknown", "NotObserved"),
        ),
        ({"children": query_app("FAILING") | query_record(BROKEN)}, ("False", "QueryRetrying")),
        ({"children": query_app("COMPLETED") | query_record(BROKEN)}, ("False", "QueryFailed")),
        ({"children": query_app("", age=100), "query_pods": ()}, ("False", "SparkOperatorMissing")),
    ],
)
def test_ready_needs_a_driver_that_reads_every_channel(changes: dict[str, Any], ready: tuple[str, str]) -> None:
    assert conditions(query_world(**changes))["Ready"] == ready


def test_a_driver_that_has_gone_silent_tells_nothing() -> None:
    """Frozen, or cut off from the API server: its last record was well."""
    old = query_app("RUNNING", age=50_000) | query_record(age=3000)
    found = query_world(old)
    status, plan = reported(found), planned(found)
    ready = next(item for item in status["conditions"] if item["type"] == "Ready")

    assert (plan.wait, plan.problem) == (None, None)
    assert steps(found) == OBJECTS
    assert (ready["status"], ready["reason"]) == ("Unknown", "NotObserved")
    assert ready["message"].startswith(
        "the driver has recorded nothing since 2027-01-15T07:10:00Z, so that nobody knows whether it follows the "
        "tunnel: see its log, and whether it reaches the API server"
    )
    assert conditions(found)["SinkReady"] == ("Unknown", "NotObserved")
    assert status["spark"] == {"application": NAME, "state": "RUNNING"}
    assert not {"seconds", "caughtUp"} & set(status["lag"])
    assert "rowsPerSecond" not in status["throughput"]
    free = reported(query_world(old, tunnel=FREE))
    unread = next(item for item in free["conditions"] if item["type"] == "Ready")
    assert (unread["status"], unread["reason"]) == ("False", "ChannelsUnowned")
    assert "not every channel is read by the query: the driver has recorded nothing since" in unread["message"]
    late = Tunnel(description(channel("c1", client=CLIENT, consumed=NOW - 90_000), kind=TunnelType.Stream))
    at_risk = query_world(old, tunnel=late)
    # the lag cannot be seen, and Degraded tells the most that it can be
    assert conditions(at_risk)["Ready"] == ("Unknown", "NotObserved")
    assert conditions(at_risk)["Degraded"] == ("True", "RetentionAtRisk")


def test_a_query_without_a_batch_tells_nothing_of_its_sink() -> None:
    following = replace(WELL, batch_id=None, rows_per_second=None, lag_seconds=None)
    found = query_world(query_app("RUNNING") | query_record(following))

    assert conditions(found)["SinkReady"] == ("Unknown", "NotObserved")
    assert reported(found)["spark"] == {
        "application": NAME,
        "state": "RUNNING",
        "recordedTime": "2027-01-15T07:58:20Z",
    }


def test_a_client_of_somebody_else_is_told() -> None:
    stranger = Tunnel(description(channel("c1", client="98765432-spark-9z-1"), kind=TunnelType.Stream))
    found = query_world(tunnel=stranger, foreign_since={"98765432-spark-9z-1": NOW - 60})

    assert conditions(found)["Degraded"] == ("True", "ForeignClient")


def test_a_query_that_cannot_go_on_waits_for_a_person() -> None:
    found = query_world(query_app("COMPLETED") | query_record(BROKEN), query_pods=())

    assert conditions(found)["Stalled"] == ("True", "QueryFailed")
    assert reported(found)["phase"] == "Failed"
    assert steps(found) == OBJECTS


def test_an_application_that_has_ended_is_replaced_after_an_edit() -> None:
    """The Spark operator submits nothing again that has ended."""
    ended = query_app("COMPLETED") | query_record(BROKEN)
    edited = query_resource(source__tunnel__onPossibleGap="Continue")
    found = query_world(ended, edited, query_pods=())
    gone = replace(found, children=query_record(BROKEN))

    assert planned(found).actions == (DeleteObject(SPARK_APPLICATION, NAME),)
    assert planned(found).again
    ending = replace(gone, query_pods=(DRIVER,))
    assert (steps(ending), planned(ending).wait is not None) == (["ApplyToExisting"], True)
    # the next driver's record is not to begin with the error of the former one
    assert steps(gone) == ["DeleteObject", *OBJECTS]
    assert planned(gone).actions[0] == DeleteObject(CONFIG_MAP, NAME)


@pytest.mark.parametrize(
    "changes",
    [
        {"source__endpoint": "https://shop.vpc.example"},
        {"source__tunnel__onPossibleGap": "Continue"},
        {"sink": {"files": {"url": "file:///lake/flights", "format": "Parquet", "compression": "zstd"}}},
        {"spark": BY_QUERY["spark"] | {"triggerIntervalSeconds": 60}},
    ],
)
def test_a_changed_document_starts_the_driver_again(changes: dict[str, Any]) -> None:
    before, after = applied(query_world()), applied(query_world(of=query_resource(**changes)))

    assert document_hash(before)
    assert document_hash(before) != document_hash(after)
    assert before["spec"] != after["spec"]


@pytest.mark.parametrize("changes", [{"monitoring": {"lagDegradedSeconds": 1}}, {"deletionPolicy": "Delete"}])
def test_any_other_edit_leaves_the_driver_alone(changes: dict[str, Any]) -> None:
    assert applied(query_world()) == applied(query_world(of=query_resource(**changes)))


def test_a_record_of_another_tunnel_is_removed_first() -> None:
    assert steps(query_world(query_record(label="former"), query_pods=()))[0] == "DeleteObject"


def test_suspension_stops_the_query_and_is_over_when_the_channels_are_free() -> None:
    of = query_resource(suspend=True)
    running = query_world(of=of)
    (suspension,) = planned(running).actions

    assert isinstance(suspension, ApplyObject)
    assert suspension.manifest["metadata"]["name"] == NAME
    assert suspension.manifest["spec"]["suspend"] is True
    assert conditions(running)["Suspended"] == ("False", "Suspending")
    stopped = replace(running, children=query_app("SUSPENDED", suspend=True) | query_record(), query_pods=())
    assert planned(stopped).actions == ()
    assert conditions(stopped)["Suspended"] == ("False", "Suspending")
    message = next(item for item in reported(stopped)["conditions"] if item["type"] == "Suspended")["message"]
    assert f"client '{CLIENT}' holds channels although its pod is gone" in message
    freed = replace(stopped, tunnel=FREE)
    assert conditions(freed)["Suspended"] == ("True", "SuspendRequested")
    assert reported(freed)["phase"] == "Suspended"


def test_an_application_that_is_to_run_again_is_not_suspended() -> None:
    """It was resumed, and the Spark operator has not acted yet: it starts a driver."""
    found = query_world(
        query_app("SUSPENDED", suspend=False) | query_record(), query_resource(suspend=True), query_pods=(), tunnel=FREE
    )

    assert applied(found)["spec"]["suspend"] is True
    assert conditions(found)["Suspended"] == ("False", "Suspending")


def test_an_application_that_nothing_sets_to_suspended_says_who_has_to() -> None:
    running = query_app("RUNNING", suspend=True) | query_record()
    found = query_world(running, query_resource(suspend=True), query_pods=(), tunnel=FREE)

    message = next(item for item in reported(found)["conditions"] if item["type"] == "Suspended")["message"]
    assert "is stopping: it is RUNNING and has no pod, so that the Spark operator has to say that it ended" in message


def test_a_query_resumes() -> None:
    resumed = query_world(query_app("SUSPENDED", suspend=True) | query_record(), query_pods=(), tunnel=FREE)

    assert applied(resumed)["spec"]["suspend"] is False
    assert conditions(resumed)["Ready"] == ("False", "StartingQuery")


def test_pods_of_spark_have_what_the_chart_says_of_users_and_images() -> None:
    settings = replace(SETTINGS, cluster_assigns_user=True, worker_pull_secrets=("registry",))
    of = query_resource().object
    *others, application = query_objects(of, TUNNEL_ID, settings)
    usual = query_objects(of, TUNNEL_ID, SETTINGS)[-1]

    accounts = [item for item in others if item["kind"] == "ServiceAccount"]
    assert [item["imagePullSecrets"] for item in accounts] == [[{"name": "registry"}]] * 2
    for role in ("driver", "executor"):
        template, usual_one = (each["spec"][role]["template"]["spec"] for each in (application, usual))
        assert "fsGroup" not in template["securityContext"]
        assert usual_one["securityContext"]["fsGroup"] == 185


def test_an_application_without_labels_is_suspended_too() -> None:
    (action,) = planned(query_world({}, query_resource(suspend=True))).actions

    assert isinstance(action, ApplyToExisting)
    assert action.manifest["spec"]["suspend"] is True


@pytest.mark.parametrize(
    "changes",
    [{"tunnel": Missing()}, {"elder": Competitor("elder", "shop", NOW - 5000, "a")}],
    ids=["the tunnel is gone", "an elder object"],
)
def test_a_problem_that_a_consumer_would_worsen_suspends_the_query(changes: dict[str, Any]) -> None:
    (action,) = planned(query_world(**changes)).actions

    assert isinstance(action, ApplyObject)
    assert action.manifest["spec"]["suspend"] is True


def test_another_problem_leaves_the_query_as_it_is() -> None:
    plan = planned(query_world(tunnel=BUSY))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.SERVICE_UNAVAILABLE


def elsewhere() -> dict[str, Any]:
    driver, executor = mounting("spark-kubernetes-driver", "new"), mounting("spark-kubernetes-executor", "new")
    return BY_QUERY["spark"] | {"driver": {"podTemplate": driver}, "executor": {"podTemplate": executor}}


@pytest.mark.parametrize("children", [query_app("RUNNING") | query_record(), {}], ids=["running", "not there"])
def test_another_volume_for_the_files_has_to_be_accepted(children: dict[tuple[str, str], Any]) -> None:
    """Also where the tunnel has not moved: Spark commits files before that."""
    unmoved = Tunnel(FREE.description, {ChannelId("c1"): FRESH})
    of = query_resource(spark=elsewhere())
    refused = query_world(children, of, tunnel=unmoved)
    problem = planned(refused).problem

    assert problem is not None
    assert problem.reason is Reason.INVALID_SPEC
    assert problem.message.startswith("spec.spark.driver.podTemplate: found 'persistentVolumeClaim/new:/flights'")
    assert "to which the query may have written" in problem.message
    assert planned(refused).actions == ()
    annotations = {names.ANNOTATION_ACCEPT_PLACE: "persistentVolumeClaim/new:/flights"}
    metadata = of.object.metadata.model_copy(update={"annotations": annotations})
    accepted = replace(of, object=of.object.model_copy(update={"metadata": metadata}))
    assert planned(query_world(of=accepted)).actions[0] == RecordStatus(
        {"filesPlace": annotations[names.ANNOTATION_ACCEPT_PLACE]}
    )


@pytest.mark.parametrize(
    ("driver", "executor", "told"),
    [
        ({}, EXECUTOR_PART, "no volume is mounted at /lake/flights or above it: give spec.spark.driver.podTemplate"),
        (DRIVER_PART, {}, "no volume is mounted at /lake/flights or above it: give spec.spark.executor.podTemplate"),
        (DRIVER_PART, DRIVER_PART, "its container 'spark-kubernetes-executor' a volumeMount"),
        (DRIVER_PART, mounting("spark-kubernetes-executor", "b"), "leads to 'persistentVolumeClaim/lake:/flights' and"),
        (
            DRIVER_PART,
            {
                "spec": EXECUTOR_PART["spec"] | {"volumes": [{"name": "files", "emptyDir": {}}]},
            },
            "volume 'files' of spec.spark.executor.podTemplate, mounted at /lake, is gone with its pod",
        ),
    ],
)
def test_files_need_one_volume_in_driver_and_executors(
    driver: dict[str, Any], executor: dict[str, Any], told: str
) -> None:
    spark = BY_QUERY["spark"] | {"driver": {"podTemplate": driver}, "executor": {"podTemplate": executor}}
    plan = planned(query_world({}, query_resource({}, spark=spark), tunnel=Missing(), query_pods=()))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.INVALID_SPEC
    assert told in plan.problem.message


SCRATCH = {"name": "scratch", "emptyDir": {}}


def with_mount(part: dict[str, Any], volume: dict[str, Any], **mount: Any) -> dict[str, Any]:
    """A template with one volume more."""
    (container,) = part["spec"]["containers"]
    mounts = [*container["volumeMounts"], {"name": volume["name"], **mount}]
    return {
        "spec": {"containers": [container | {"volumeMounts": mounts}], "volumes": [*part["spec"]["volumes"], volume]}
    }


@pytest.mark.parametrize(
    ("templates", "told"),
    [
        (
            {"driver": with_mount(DRIVER_PART, SCRATCH, mountPath=f"/var/lib/ots/{TUNNEL_ID}")},
            f"spec.spark.driver.podTemplate: mounts a volume at /var/lib/ots/{TUNNEL_ID}, which would have the check",
        ),
        (
            {"driver": with_mount(DRIVER_PART, SCRATCH, mountPath="/lake/flights/_spark_metadata")},
            "spec.spark.driver.podTemplate mounts a volume at /lake/flights/_spark_metadata, which would have a part",
        ),
        (
            {"executor": with_mount(EXECUTOR_PART, SCRATCH, mountPath="/lake/flights/x")},
            "spec.spark.executor.podTemplate mounts a volume at /lake/flights/x, which would have a part of the files",
        ),
        (
            {"driver": with_mount(DRIVER_PART, SCRATCH, mountPath="/lake/flights", readOnly=True)},
            "spec.spark.driver.podTemplate: volume 'scratch', mounted at /lake/flights, may not be written",
        ),
        (
            {"driver": with_mount(DRIVER_PART, SCRATCH, mountPath="/etc/ots/query.yaml", subPath="x")},
            "spec.spark.driver.podTemplate: found a volume at /etc/ots/query.yaml, where the pod has its document",
        ),
    ],
)
def test_a_mount_below_a_folder_of_the_query_is_told(templates: dict[str, Any], told: str) -> None:
    parts = {role: {"podTemplate": part} for role, part in templates.items()}
    plan = planned(
        query_world({}, query_resource({}, spark=BY_QUERY["spark"] | parts), tunnel=Missing(), query_pods=())
    )

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.INVALID_SPEC
    assert told in plan.problem.message


def test_columns_that_are_one_to_spark_are_told_before_anything_is_created() -> None:
    columns = [{"name": "price", "type": "double"}, {"name": "Price", "type": "double"}]
    files = {"url": "file:///lake/flights", "format": "Parquet", "columns": columns}
    plan = planned(query_world({}, query_resource({}, sink={"files": files}), tunnel=Missing(), query_pods=()))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.INVALID_SPEC
    assert "sink.files.columns: found 'Price' beside 'price'" in plan.problem.message


def unrenderable(**changes: Any) -> Resource:
    """An object that was valid when its query was applied."""
    columns = [{"name": "price", "type": "double"}, {"name": "Price", "type": "double"}]
    files = {"url": "file:///lake/flights", "format": "Parquet", "columns": columns}
    return query_resource(sink={"files": files}, **changes)


def test_a_query_that_cannot_be_rendered_is_removed_in_place_of_suspended() -> None:
    of = unrenderable(suspend=True)

    assert planned(query_world(of=of)).actions == (DeleteObject(SPARK_APPLICATION, NAME),)
    assert planned(query_world({}, of, query_pods=())).actions == ()


def test_a_query_that_cannot_be_rendered_is_left_as_it_is() -> None:
    found = query_world(of=unrenderable())
    assessment = assess(found, spark_missing_seconds=60)

    plan = plan_query(found, assessment, SETTINGS, None)

    assert plan.actions == ()
    assert plan.problem is not None
    assert "found 'Price' beside 'price'" in plan.problem.message


def beside_files(*mounts: dict[str, Any], **volumes: dict[str, Any]) -> dict[str, Any]:
    """The driver's template with more mounts and volumes."""
    spec = DRIVER_PART["spec"]
    (container,) = spec["containers"]
    more = [{"name": name, **source} for name, source in volumes.items()]
    container = container | {"volumeMounts": [*container["volumeMounts"], *mounts]}
    return {"spec": {"containers": [container], "volumes": [*spec["volumes"], *more]}}


@pytest.mark.parametrize(
    "template",
    [
        beside_files(checkpoint={"emptyDir": {}}),
        beside_files({"name": "files", "mountPath": "/var/lib/ots"}),
        beside_files({"name": "checkpoint", "mountPath": "/var/lib/ots", "readOnly": True}),
        beside_files({"name": "checkpoint", "mountPath": "/var/lib/ots", "subPath": "b"}),
    ],
    ids=["another volume", "another mount", "read-only", "another folder"],
)
def test_checkpoints_stay_in_their_claim_whatever_the_template_has(template: dict[str, Any]) -> None:
    spark = BY_QUERY["spark"] | {"driver": {"podTemplate": template}}
    plan = planned(query_world({}, query_resource(spark=spark), query_pods=()))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.INVALID_SPEC
    assert plan.problem.message.startswith("spec.spark.driver.podTemplate: the folder /var/lib/ots of checkpoints")
    assert "persistentVolumeClaim/flights-checkpoint:/" in plan.problem.message


def test_files_are_not_below_the_folder_of_checkpoints() -> None:
    """The driver would write its log of batches into another volume than executors their files."""
    parts = {
        role: {"podTemplate": mounting(f"spark-kubernetes-{role}", path="/var/lib")} for role in ("driver", "executor")
    }
    sink = {"files": {"url": "file:///var/lib/ots/flights", "format": "Parquet"}}
    of = query_resource(sink=sink, spark=BY_QUERY["spark"] | parts)
    problem = planned(query_world({}, of, query_pods=())).problem

    assert problem is not None
    assert (
        "'file:///var/lib/ots/flights': found below /var/lib/ots, where the driver has its checkpoints"
        in problem.message
    )


def found_in(
    driver: dict[str, Any], executor: dict[str, Any] = EXECUTOR_PART, url: str = "file:///lake/flights"
) -> str:
    """The problem of an object with these templates."""
    spark = BY_QUERY["spark"] | {"driver": {"podTemplate": driver}, "executor": {"podTemplate": executor}}
    of = query_resource({}, sink={"files": {"url": url, "format": "Delta"}}, spark=spark)
    problem = planned(query_world({}, of, query_pods=(), tunnel=Missing())).problem
    assert problem is None or problem.reason is Reason.INVALID_SPEC
    return "" if problem is None else problem.message


def test_files_are_not_around_the_mount_of_checkpoints() -> None:
    """The driver would find its checkpoints among the files, and executors would not."""
    driver, executor = (mounting(f"spark-kubernetes-{role}", path="/var") for role in ("driver", "executor"))

    assert "'file:///var/lib': found around /var/lib/ots" in found_in(driver, executor, "file:///var/lib")
    assert found_in(driver, executor, "file:///var/library") == ""


def test_a_mount_that_differs_between_pods_is_no_place() -> None:
    driver, executor = mounting("spark-kubernetes-driver"), mounting("spark-kubernetes-executor")
    for template in (driver, executor):
        template["spec"]["containers"][0]["volumeMounts"][0]["subPathExpr"] = "$(POD_NAME)"

    assert "mounts '/lake' by subPathExpr '$(POD_NAME)', which may be another folder in each pod" in found_in(
        driver, executor
    )


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/lake/", "spec.spark.driver.podTemplate mounts 2 volumes at /lake, as '/lake' and '/lake/'"),
        ("//lake", "spec.spark.driver.podTemplate mounts 2 volumes at /lake, as '/lake' and '//lake'"),
        ("lake", "spec.spark.driver.podTemplate mounts 2 volumes at /lake, as '/lake' and 'lake'"),
        ("/var/lib/ots/", "the pod mounts 2 volumes at /var/lib/ots, as '/var/lib/ots' and '/var/lib/ots/'"),
        ("//var/lib/ots", "the pod mounts 2 volumes at /var/lib/ots, as '/var/lib/ots' and '//var/lib/ots'"),
    ],
)
def test_a_second_mount_of_the_same_folder_hides_no_first_one(path: str, told: str) -> None:
    """To the API server they are two, and the later one wins."""
    driver = beside_files({"name": "scratch", "mountPath": path}, scratch={"emptyDir": {}})

    assert told in found_in(driver)


@pytest.mark.parametrize("name", ["config", "source-secret"])
def test_a_volume_takes_no_place_of_document_or_keys(name: str) -> None:
    driver = beside_files(**{name: {"configMap": {"name": "log4j"}}})

    assert f"spec.spark.driver.podTemplate: found a volume of the name '{name}'" in found_in(driver)


def test_a_mount_takes_no_place_of_document_or_keys() -> None:
    driver = beside_files({"name": "mine", "mountPath": "/etc/ots/"}, mine={"configMap": {"name": "log4j"}})

    assert "spec.spark.driver.podTemplate: found a volume at /etc/ots, where the pod has its document" in found_in(
        driver
    )


def test_what_a_pod_does_not_have_takes_no_place() -> None:
    """Executors of files have neither document nor keys; a name that is none is left to the API server."""
    executor = mounting("spark-kubernetes-executor")
    executor["spec"]["volumes"] += [{"name": "config", "emptyDir": {}}, {"name": ["x"]}, {"name": {"x": 1}}]

    assert found_in(DRIVER_PART, executor) == ""


def test_only_the_mount_that_has_the_folder_has_to_be_clear() -> None:
    above = [{"name": "all", "mountPath": path, "subPathExpr": "$(POD_NAME)"} for path in ("/", "/x", "/lake")]
    driver, executor = (mounting(f"spark-kubernetes-{role}", path="/lake/flights") for role in ("driver", "executor"))
    for template in (driver, executor):
        template["spec"]["containers"][0]["volumeMounts"] += above
        template["spec"]["volumes"].append({"name": "all", "emptyDir": {}})

    assert found_in(driver, executor) == ""


@pytest.mark.parametrize("setting", ["spark.driver.memory", "spark.executor.instances"])
def test_a_setting_that_is_a_field_is_refused(setting: str) -> None:
    """The Spark operator would put the field over it."""
    of = query_resource({}, spark=BY_QUERY["spark"] | {"conf": {setting: "9"}})
    problem = planned(query_world({}, of, query_pods=(), tunnel=Missing())).problem

    assert problem is not None
    field = setting.replace("spark.", "spec.spark.", 1)
    assert problem.message == f"spec.spark.conf: found {setting} '9', allowed is the field {field} in its place"


def test_files_are_not_around_the_folders_of_checkpoints() -> None:
    """Delta's cleaning would remove the checkpoints, which its table does not know, once they are a week old."""
    spark = BY_QUERY["spark"] | {"checkpoint": {"claimName": "lake"}}

    def found(url: str) -> Problem | None:
        of = query_resource({}, sink={"files": {"url": url, "format": "Delta"}}, spark=spark)
        return planned(query_world({}, of, query_pods=(), tunnel=Missing())).problem

    problem = found("file:///lake")

    assert found("file:///lake/flights") is None
    assert problem is not None
    assert problem.reason is Reason.INVALID_SPEC
    assert "'file:///lake': leads to 'persistentVolumeClaim/lake:/', the root of the claim" in problem.message


def test_a_reset_is_refused_with_the_way_to_start_over() -> None:
    of = query_resource(suspend=True)
    annotations = {names.ANNOTATION_RESET: '{"token": "a", "form": "NewTunnel"}'}
    metadata = of.object.metadata.model_copy(update={"annotations": annotations})
    asking = replace(of, object=of.object.model_copy(update={"metadata": metadata}))
    stopped = query_world(query_app("SUSPENDED", suspend=True), asking, query_pods=(), tunnel=FREE)
    first = planned(stopped).actions[0]

    assert isinstance(first, RecordStatus)
    assert first.change["reset"]["state"] == "Refused"
    message = first.change["reset"]["message"]
    assert "spec.engine.stream: found Spark, needed is Workers" in message
    assert "another spec.source.tunnel.name and another spec.sink.files.url" in message


def test_the_folder_of_checkpoints_is_that_of_the_tunnel() -> None:
    plan = planned(query_world())
    document = next(
        yaml.safe_load(action.manifest["data"]["query.yaml"])
        for action in plan.actions
        if isinstance(action, ApplyObject) and action.manifest["metadata"]["name"] == f"{NAME}-config"
    )

    assert document["checkpointDirectory"] == f"/var/lib/ots/{TUNNEL_ID}"
    assert document["clientTag"] == "01234567"
    assert document["progress"] == {"namespace": "default", "configMap": NAME, "label": TUNNEL_ID}


def test_channels_that_wait_for_their_parents_are_no_reason_to_wait() -> None:
    child = channel("c2", ChannelStatus.WAIT, client="")
    found = query_world(tunnel=Tunnel(description(channel("c1", client=CLIENT), child, kind=TunnelType.Stream)))

    assert conditions(found)["Ready"] == ("True", "Consuming")


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"spark.sql.streaming.commitProtocolClass": "a.B"}, "allowed is none: without Spark's own commits of files"),
        ({"spark.speculation": " True"}, "found spark.speculation, allowed is none or false: a second attempt"),
        ({"spark.hadoop.fs.file.impl": "a.B"}, "found spark.hadoop.fs.file.impl, allowed is none: the files of"),
        ({"spark.delta.logStore.class": "a.B"}, "found spark.delta.logStore.class, allowed is none: Delta's commits"),
        ({"spark.delta.logStore.file.impl": "a.B"}, "found spark.delta.logStore.file.impl, allowed is none: Delta's"),
        (
            {"spark.kubernetes.executor.volumes.persistentVolumeClaim.x.mount.path": "/lake/flights/"},
            "the files of the query are: mount it elsewhere; files need a volume of spec.spark.executor.podTemplate",
        ),
        (
            {"spark.kubernetes.driver.volumes.hostPath.x.mount.path": "/var/lib"},
            "'/var/lib', where the checkpoints of the query are: mount it elsewhere",
        ),
        (
            {"spark.kubernetes.driver.secrets.other": "/etc/ots/secrets/source"},
            "'/etc/ots/secrets/source', where the driver has its document or its keys: mount it elsewhere",
        ),
        (
            {"spark.kubernetes.driver.volumes.emptyDir.x.mount.path": "/etc/ots"},
            "'/etc/ots', where the driver has its document or its keys: mount it elsewhere",
        ),
    ],
)
def test_settings_that_break_the_promise_are_told_before_anything_is_created(conf: dict[str, str], told: str) -> None:
    of = query_resource({}, spark=BY_QUERY["spark"] | {"conf": conf})
    plan = planned(query_world({}, of, tunnel=Missing(), query_pods=()))

    assert plan.actions == ()
    assert plan.problem is not None
    assert plan.problem.reason is Reason.INVALID_SPEC
    assert plan.problem.message.startswith("spec.spark.conf: found ")
    assert told in plan.problem.message


def test_other_settings_are_spark_s() -> None:
    conf = {
        "spark.speculation": "false",
        "spark.sql.sources.commitProtocolClass": "a.B",
        "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.mount.path": "/lake/flights-scratch",
        "spark.kubernetes.driver.secrets.authority": "/etc/ots/authority",
    }
    of = query_resource({}, spark=BY_QUERY["spark"] | {"conf": conf})

    assert planned(query_world({}, of, tunnel=Missing(), query_pods=())).problem is None


@pytest.mark.parametrize(
    ("tunnel", "reason"),
    [(EXPIRED, Reason.TUNNEL_EXPIRED), (Missing(), Reason.TUNNEL_NOT_FOUND)],
    ids=["expired", "deleted"],
)
def test_a_query_whose_tunnel_is_gone_is_suspended_until_the_object_starts_over(tunnel: Any, reason: Reason) -> None:
    found = query_world(tunnel=tunnel)
    problem = planned(found).problem

    assert applied(found)["spec"]["suspend"] is True
    assert problem is not None
    assert problem.reason is reason
    # a folder of files is of one query, and the next one has another tunnel
    assert "with another spec.source.tunnel.name and another spec.sink.files.url" in problem.message
    assert conditions(found)["Ready"] == ("False", reason.value)
    # its driver has ended by the same error
    over = query_app("COMPLETED") | query_record(BROKEN)
    assert planned(query_world(over, tunnel=tunnel, query_pods=())).problem == problem
