"""Commands about an object, ready to be typed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import Any

from ots_tunnel_operator import names
from ots_tunnel_operator.plugin.ott import Ott
from ots_tunnel_operator.times import parse_time, timestamp

#: By which the chart's pods of the operator are found.
OPERATOR_LABEL = "app.kubernetes.io/name=ots-tunnel-operator"


def own(ott: Ott, command: str) -> str:
    """A command of this plugin."""
    return f"kubectl ott {command} {ott.name} -n {ott.namespace}"


def kubectl(ott: Ott, rest: str) -> str:
    """A command of kubectl in the object's namespace."""
    return f"kubectl -n {ott.namespace} {rest}"


def events(ott: Ott) -> str:
    """Show the events of the object and its children."""
    return own(ott, "events")


def scale(ott: Ott, replicas: int) -> str:
    """Set the number of workers."""
    return kubectl(ott, f"scale ott/{ott.name} --replicas={replicas}")


def edit(ott: Ott) -> str:
    """Edit the object."""
    return kubectl(ott, f"edit ott {ott.name}")


def logs(ott: Ott, role: str) -> str:
    """Show the logs of the object's pods of a role: worker, snapshot or stream."""
    return kubectl(ott, f"logs -l ots-tunnel.dev/name={ott.name},ots-tunnel.dev/role={role} --prefix --tail=50")


def pods(ott: Ott) -> str:
    """Describe the pods of the object's workers, with their events."""
    return kubectl(ott, f"describe pods -l ots-tunnel.dev/name={ott.name},ots-tunnel.dev/role=worker")


def merge(ott: Ott, patch: str) -> str:
    """Send a merge patch, given as JSON."""
    return kubectl(ott, f"patch ott {ott.name} --type merge -p '{patch}'")


def service(ott: Ott, command: str) -> str:
    """A command of `ots-tunnel` about the object's tunnel, with the keys of its Secrets."""
    return f"ots-tunnel {command} --from-object {ott.namespace}/{ott.name}"


def create_tunnel(ott: Ott) -> str:
    """Create the tunnel that the object is to use: as the operator would, but for an end, which a tunnel may lack."""
    tunnel = (ott.spec.get("source") or {}).get("tunnel") or {}
    # of a tunnel for existing rows that Spark reads from the table only the changes are left
    kind = "Stream" if ott.uses_spark or ott.is_mirror else tunnel.get("type")
    return service(ott, f"tunnel create {_tunnel(ott)} --type {kind}{_start(tunnel.get('stream') or {})}")


def _start(stream: Mapping[str, Any]) -> str:
    """Options for the start of a stream; a fraction of a second is cut off, so that no change is left out."""
    if stream.get("startFrom") == "Earliest":
        return " --earliest"
    start = parse_time(stream.get("startTime"))
    return "" if start is None else f" --start-time {timestamp(floor(start))}"


def _tunnel(ott: Ott) -> str:
    """Table and name of the tunnel, as arguments."""
    source = ott.spec.get("source") or {}
    return f"{source.get('table')} {(source.get('tunnel') or {}).get('name')}"


def leases(ott: Ott) -> str:
    """Show who reads which shard of a stream, how far, and how late."""
    source = ott.spec.get("source") or {}
    return service(ott, f"stream leases {source.get('table')} {ott.leases or 'LEASES'}")


def delete(ott: Ott) -> str:
    """Delete the object."""
    return kubectl(ott, f"delete ott {ott.name}")


def force_delete(ott: Ott) -> str:
    """Let the operator release an object that is being deleted at once."""
    return kubectl(ott, f"annotate ott {ott.name} --overwrite {names.ANNOTATION_FORCE_DELETE}=true")


def release(ott: Ott) -> str:
    """Take the operator's finalizer from an object; refused where it is no longer at its place."""
    path = f"/metadata/finalizers/{ott.finalizers.index(names.FINALIZER)}"
    test = f'{{"op":"test","path":"{path}","value":"{names.FINALIZER}"}}'
    return kubectl(ott, f"""patch ott {ott.name} --type json -p '[{test},{{"op":"remove","path":"{path}"}}]'""")


def operator_pods(namespace: str) -> str:
    """Show the pods of the operator."""
    return f"kubectl -n {namespace} get pods -l {OPERATOR_LABEL}"
