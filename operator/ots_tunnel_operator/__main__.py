"""The command `ots-tunnel-operator`: its options, and what each of them means."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

import click

from ots_tunnel.allocator import return_freed_memory
from ots_tunnel.errors import ConfigError
from ots_tunnel_operator import names
from ots_tunnel_operator.installation import Finding, check_installation
from ots_tunnel_operator.kube.client import Kube
from ots_tunnel_operator.process.depth import allow_deep_objects
from ots_tunnel_operator.process.kopf_watch import outlast_errors_of_watches
from ots_tunnel_operator.process.read_buffers import read_in_small_pieces
from ots_tunnel_operator.running.logs import configure_logs
from ots_tunnel_operator.running.operation import Place, end, run_operator
from ots_tunnel_operator.settings import Settings, WorkerNetwork

#: Name of the Lease of the leader election without the chart, which names it after the release.
LEASE_NAME = "ots-tunnel-operator"


def read_labels(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The labels of a repeatable option.

    Raises:
        BadParameter: a value has another form than KEY=VALUE.
    """
    pairs = [value.partition("=") for value in values]
    for key, equals, value in pairs:
        if not key or not equals:
            raise click.BadParameter(f"found {key + equals + value!r}, allowed is KEY=VALUE")
    return tuple((key, value) for key, _, value in pairs)


def read_network(_: click.Context, __: click.Parameter, text: str | None) -> WorkerNetwork | None:
    """What `--worker-network` allows; the API server judges peers and rules.

    Raises:
        BadParameter: it is no JSON object with lists `from` and, where connections of workers are limited, `egress`.
    """
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"found no JSON: {error}") from error
    if not isinstance(found, dict) or not {"from"} <= found.keys() <= {"from", "egress"}:
        raise click.BadParameter('allowed is an object with "from" and, optionally, "egress"')
    for key, items in found.items():
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise click.BadParameter(f"{key}: allowed is a list of objects")
    egress = found.get("egress")
    return WorkerNetwork(tuple(found["from"]), None if egress is None else tuple(egress))


@click.group(
    context_settings={"auto_envvar_prefix": "OTS_OPERATOR"},
    epilog="Example: ots-tunnel-operator run --namespace shop",
)
@click.version_option(package_name="ots-tunnel")
def main() -> None:
    """Run the Kubernetes operator of TablestoreTunnel objects."""


@main.command(
    epilog="""Examples:

    \b
      ots-tunnel-operator run
      ots-tunnel-operator run --namespace shop --worker-image registry.example/ots-tunnel:0.1.0 --log-level debug"""
)
@click.option("--namespace", "-n", "namespaces", multiple=True, help="Watch only this namespace; repeatable.")
@click.option("--worker-image", envvar=names.ENV_WORKER_IMAGE, default="", help="Default image of worker pods.")
@click.option("--spark-image", envvar=names.ENV_SPARK_IMAGE, default="", help="Default image of Spark pods.")
@click.option(
    "--spark-iceberg-image",
    envvar=names.ENV_SPARK_ICEBERG_IMAGE,
    default="",
    help="Default image of Spark pods of objects with sink.files.format Iceberg.",
)
@click.option(
    "--image-pull-policy",
    envvar="OTS_OPERATOR_IMAGE_PULL_POLICY",
    type=click.Choice(["Always", "IfNotPresent", "Never"]),
    default="IfNotPresent",
    show_default=True,
    help="Pull policy of worker and Spark pods.",
)
@click.option(
    "--worker-pull-secret",
    "worker_pull_secrets",
    multiple=True,
    help="Secret with which the image of worker pods is pulled, in the namespace of each object; repeatable.",
)
@click.option(
    "--worker-budgets/--no-worker-budgets",
    default=True,
    show_default=True,
    help="Make a PodDisruptionBudget for the workers of each object; those that exist stay.",
)
@click.option(
    "--worker-network",
    callback=read_network,
    metavar="JSON",
    help="Make a NetworkPolicy for the workers of each object: `from` lists peers that may connect, "
    "`egress` rules of where workers may connect to. Policies that exist stay without the option.",
)
@click.option(
    "--pod-monitor-interval",
    default="30s",
    show_default=True,
    help="Time between two scrapes by the PodMonitor of an object that asks for one (spec.monitoring.podMonitor).",
)
@click.option(
    "--pod-monitor-label",
    "pod_monitor_labels",
    multiple=True,
    callback=read_labels,
    metavar="KEY=VALUE",
    help="Label of these PodMonitors, by which Prometheus selects them; repeatable.",
)
@click.option(
    "--cluster-assigns-user",
    is_flag=True,
    help="Leave user and group of worker pods to the cluster, as OpenShift wants it.",
)
@click.option(
    "--poll-seconds",
    type=click.FloatRange(0.5, 300),
    default=15.0,
    show_default=True,
    help="Seconds between two DescribeTunnel calls for one object.",
)
@click.option(
    "--status-seconds",
    type=click.FloatRange(0, 300),
    default=15.0,
    show_default=True,
    help="Shortest time in seconds between two writes of figures to a status.",
)
@click.option(
    "--rollout-budget",
    envvar="OTS_OPERATOR_ROLLOUT_BUDGET",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Objects whose workers may be replaced at once because this release has another worker image or pod template.",
)
@click.option(
    "--http-host",
    default="0.0.0.0",
    show_default=True,
    help="Address of the server of probes and metrics; 0.0.0.0 is every address, IPv6 included.",
)
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the server of probes and metrics; 0 selects a free port.",
)
@click.option(
    "--console-port",
    type=click.IntRange(0, 65535),
    help="Port of the console, a page for people; 0 selects a free port. Without it there is none.",
)
@click.option(
    "--console-host",
    default="127.0.0.1",
    show_default=True,
    help="Address of the console. It asks nobody for a password: on 127.0.0.1 only a forwarded port reaches it.",
)
@click.option(
    "--console-name",
    "console_names",
    multiple=True,
    help="Name by which a browser may ask for a console that is not on 127.0.0.1, beside addresses and Services; "
    "repeatable.",
)
@click.option(
    "--lease-namespace",
    envvar=["OTS_OPERATOR_LEASE_NAMESPACE", "POD_NAMESPACE"],
    default="",
    help="Namespace of the leader election's Lease; empty means no election, which allows only one replica.",
)
@click.option(
    "--lease-name",
    default=LEASE_NAME,
    show_default=True,
    help="Name of the Lease; operators with the same one take turns, those with different scopes need different ones.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning"]),
    default="info",
    show_default=True,
    help="Lowest level of the operator's own log lines.",
)
def run(  # noqa: PLR0913 - click gives one argument per option
    namespaces: tuple[str, ...],
    worker_image: str,
    spark_image: str,
    spark_iceberg_image: str,
    image_pull_policy: str,
    worker_pull_secrets: tuple[str, ...],
    worker_budgets: bool,
    worker_network: WorkerNetwork | None,
    pod_monitor_interval: str,
    pod_monitor_labels: tuple[tuple[str, str], ...],
    cluster_assigns_user: bool,
    poll_seconds: float,
    status_seconds: float,
    rollout_budget: int,
    http_host: str,
    http_port: int,
    console_port: int | None,
    console_host: str,
    console_names: tuple[str, ...],
    lease_namespace: str,
    lease_name: str,
    log_level: str,
) -> None:
    """Run until stopped. The exit code is 1 when the lease is lost or kopf fails, and 2 without a cluster, or when an
    address is in use."""
    # before the first thread of ours: a heap that exists stays
    return_freed_memory()
    allow_deep_objects()
    read_in_small_pieces()
    outlast_errors_of_watches()
    configure_logs(log_level)
    # a follower ends at once; kopf replaces this handler when the process leads
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    settings = Settings(
        worker_image=worker_image,
        spark_image=spark_image,
        spark_iceberg_image=spark_iceberg_image,
        image_pull_policy=image_pull_policy,
        worker_pull_secrets=worker_pull_secrets,
        worker_budgets=worker_budgets,
        worker_network=worker_network,
        pod_monitor_interval=pod_monitor_interval,
        pod_monitor_labels=pod_monitor_labels,
        cluster_assigns_user=cluster_assigns_user,
        poll_seconds=poll_seconds,
        status_seconds=status_seconds,
        rollout_budget=rollout_budget,
        lease=f"{lease_namespace}/{lease_name}" if lease_namespace else "",
    )
    place = Place(
        namespaces=namespaces,
        lease_namespace=lease_namespace,
        lease_name=lease_name,
        http_host=http_host,
        http_port=http_port,
        console_host=console_host,
        console_port=console_port,
        console_names=console_names,
    )
    try:
        code = run_operator(settings, place)
    except ConfigError as error:
        click.echo(f"ots-tunnel-operator: {error}", err=True)
        code = 2
    end(code)


@main.command(
    epilog="""Example:

    \b
      ots-tunnel-operator check --namespace ots-tunnel-system --url http://ots-tunnel-operator-metrics:8080"""
)
@click.option("--namespace", required=True, help="Namespace of the dry runs; nothing is stored.")
@click.option("--url", default="", help="Address of the operator's probes and metrics; without it they are left out.")
def check(namespace: str, url: str) -> None:
    """Look whether an installation works, as `helm test` does; the exit code is 1 when something is wrong."""
    try:
        findings = asyncio.run(_check(namespace, url))
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    for finding in findings:
        click.echo(str(finding))
    sys.exit(int(any(finding.wrong for finding in findings)))


async def _check(namespace: str, url: str) -> list[Finding]:
    kube = await Kube.connect()
    try:
        return await check_installation(kube, namespace, url)
    finally:
        await kube.close()


if __name__ == "__main__":
    main()
