"""The part of a plan that follows the tunnel with a query of Spark. Pure; `assess.spark.query` says where it stands.

The application is one object for the life of the tunnel. Its spec has a hash of the driver's document, so that the
Spark operator starts the driver again with a changed one. An application that has ended is not started again by an
edit: it is replaced, once the edit would have changed it and its pods have ended.
"""

from __future__ import annotations

from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.api.object import TablestoreTunnel
from ots_tunnel_operator.assess.assessment import Assessment
from ots_tunnel_operator.assess.spark.query import Query
from ots_tunnel_operator.assess.spark.query_state import QueryState
from ots_tunnel_operator.kube.drift import stamp, stamped
from ots_tunnel_operator.kube.kinds import CONFIG_MAP, SPARK_APPLICATION, Manifest
from ots_tunnel_operator.manifests.files_place import files_place
from ots_tunnel_operator.manifests.spark.query_application import query_application
from ots_tunnel_operator.manifests.spark.query_document import query_config, query_config_map, query_record_map
from ots_tunnel_operator.manifests.spark.query_session import is_of_iceberg
from ots_tunnel_operator.manifests.spark.rights import executors_account, role, role_binding, service_account
from ots_tunnel_operator.names import ROLE_STREAM
from ots_tunnel_operator.plan.actions import (
    Action,
    ApplyObject,
    ApplyToExisting,
    DeleteObject,
    Plan,
    RecordStatus,
    Wait,
)
from ots_tunnel_operator.plan.snapshot import record_label
from ots_tunnel_operator.plan.stopping import suspend_application
from ots_tunnel_operator.reasons import Problem, Reason
from ots_tunnel_operator.settings import Settings
from ots_tunnel_operator.world.world import World


def plan_query(world: World, assessment: Assessment, settings: Settings, problem: Problem | None) -> Plan:
    """Keep the query as wanted.

    Args:
        world: what was observed; the tunnel's id is recorded.
        assessment: of this world.
        settings: of the process.
        problem: a problem that does not stop the query, for the report.
    """
    query, name = assessment.query, names.query_name(world.resource.name)
    try:
        *others, application = _rendered(world, settings)
    except ConfigError as error:
        return Plan(problem=problem or Problem(Reason.INVALID_SPEC, str(error)))
    if query.state is QueryState.FAILED and not _is_as_applied(world, application):
        wait = Wait(Reason.STARTING_QUERY, "the SparkApplication, which has ended, is replaced by one of the new spec")
        return Plan((DeleteObject(SPARK_APPLICATION, name),), wait, problem, again=True)
    if query.application is None and any(pod.is_alive and not pod.terminated for pod in world.query_pods):
        # a driver of the same name could not be submitted, and two of them would fight over the folders; one that has
        # lost its labels to another client gets them back
        wait = Wait(Reason.STARTING_QUERY, "pods of the former SparkApplication are ending")
        return Plan((ApplyToExisting(application),), wait, problem)
    actions: tuple[Action, ...] = (
        *_place(world),
        *_stale_record(world, query),
        *(ApplyObject(item) for item in (*others, application)),
    )
    rests = query.state in (QueryState.FOLLOWING, QueryState.SILENT, QueryState.FAILED)
    starting = None if rests else Wait(Reason.STARTING_QUERY, query.message)
    return Plan(actions, starting, problem or query.problem)


def suspend_query(world: World, query: Query, settings: Settings) -> tuple[Action, ...] | None:
    """The actions that suspend a running query; None where none runs."""
    if query.state is QueryState.NOT_USED:
        return None
    try:
        application = _rendered(world, settings)[-1]
    except ConfigError:
        # it cannot be rendered any more, and what cannot be suspended is removed: the folder of checkpoints stays
        name = names.query_name(world.resource.name)
        return (DeleteObject(SPARK_APPLICATION, name),) if query.application is not None else None
    return suspend_application(query.application, world.query_pods, lambda: application)


def query_objects(obj: TablestoreTunnel, tunnel_id: str, settings: Settings) -> tuple[Manifest, ...]:
    """Every object of a query in the order of need; the application is last.

    Raises:
        ConfigError: a query cannot carry out the object.
    """
    config = query_config(obj, tunnel_id=tunnel_id)
    return (
        service_account(obj, ROLE_STREAM, settings.worker_pull_secrets),
        executors_account(obj, ROLE_STREAM, settings.worker_pull_secrets),
        role(obj, ROLE_STREAM),
        role_binding(obj, ROLE_STREAM),
        query_config_map(obj, config),
        query_record_map(obj, tunnel_id=tunnel_id),
        query_application(
            obj,
            config,
            image=_image(obj, settings),
            pull_policy=settings.image_pull_policy,
            cluster_assigns_user=settings.cluster_assigns_user,
        ),
    )


def _rendered(world: World, settings: Settings) -> tuple[Manifest, ...]:
    """The objects, rendered once for a generation and a tunnel."""
    tunnel_id, rendered = str(world.resource.recorded_tunnel.get("id") or ""), world.resource.rendered
    key = "query", tunnel_id, _image(world.resource.object, settings), settings.image_pull_policy
    if key not in rendered:
        rendered[key] = query_objects(world.resource.object, tunnel_id, settings)
    found: tuple[Manifest, ...] = rendered[key]
    return found


def _image(obj: TablestoreTunnel, settings: Settings) -> str:
    """The image of driver and executors where the object names none."""
    return settings.spark_iceberg_image if is_of_iceberg(obj) else settings.spark_image


def _is_as_applied(world: World, application: Manifest) -> bool:
    """Whether the application that exists was applied as it would be now."""
    found = world.child(SPARK_APPLICATION.kind, names.query_name(world.resource.name))
    return found is not None and stamp(found) == stamp(stamped(application))


def _place(world: World) -> tuple[RecordStatus, ...]:
    """The record of the place of files, before the query can write there; one that was accepted takes over."""
    wanted = files_place(world.resource.object)
    if not wanted or wanted == world.resource.status.get("filesPlace"):
        return ()
    return (RecordStatus({"filesPlace": wanted}),)


def _stale_record(world: World, query: Query) -> tuple[DeleteObject, ...]:
    """The removal of a record that says nothing of the application to come: of another tunnel, or of a former error."""
    name = names.query_name(world.resource.name)
    record = world.child(CONFIG_MAP.kind, name)
    if record is None:
        return ()
    is_of_another = record_label(record) != str(world.resource.recorded_tunnel.get("id") or "")
    is_over = query.application is None and query.progress is not None and bool(query.progress.error)
    return (DeleteObject(CONFIG_MAP, name),) if is_of_another or is_over else ()
