"""What `spec.spark.conf` may not set where a query of Spark follows the tunnel. Pure.

Volumes that Spark's settings mount count beside those of the pod templates, which alone are compared: files or
checkpoints would be elsewhere than the operator, or the other pods, believe.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

from ots_tunnel.query.settings import refused_settings
from ots_tunnel_operator.manifests.spark.field_settings import settings_of_fields
from ots_tunnel_operator.manifests.spark.pod_settings import hidden_pods

_MOUNT: Final = re.compile(r"spark\.kubernetes\.(driver|executor)\.(?:volumes\..+\.mount\.path|secrets\..+)")


def conf_findings(conf: Mapping[str, str], folders: Mapping[str, str]) -> Iterator[str]:
    """What is to be said of the settings of an object.

    Args:
        conf: of the object.
        folders: what is in each folder that pods get from their templates.
    """
    yield from hidden_pods(conf)
    yield from settings_of_fields(conf)
    for found in refused_settings(conf):
        yield f"spec.spark.conf: {found}"
    for name, role, path in conf_mounts(conf):
        hidden = [what for folder, what in folders.items() if overlap(folder, path)]
        if hidden:
            yield (
                f"spec.spark.conf: found {name} {conf[name][:256]!r}, where the {hidden[0]} are: mount it elsewhere; "
                f"files need a volume of spec.spark.{role}.podTemplate"
            )


def conf_mounts(conf: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What the settings of an object mount: the setting, `driver` or `executor`, and the path."""
    for name, value in conf.items():
        if (found := _MOUNT.fullmatch(name)) is not None:
            yield name, found[1], posixpath.normpath(value)


def overlap(one: str, other: str) -> bool:
    """Whether one of two folders is the other one, or below it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
