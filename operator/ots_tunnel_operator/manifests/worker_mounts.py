"""The volumes that a pod template mounts into a container for files. Pure.

The API server does not validate templates, so anything may be in them.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ots_tunnel_operator import names

#: Sources of volumes that are made for a pod and deleted with it.
_WITH_POD = frozenset({"emptyDir", "ephemeral"})
#: Sources that no container may write.
_NEVER_WRITTEN = frozenset({"configMap", "secret", "downwardAPI", "projected", "image"})
#: Kind of a source -> its field that its driver alone reads. A place is shown in status and events.
_FOR_DRIVERS: Mapping[str, str] = {"csi": "volumeAttributes", "flexVolume": "options"}


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume at a path in a container.

    Args:
        path: in the container.
        volume: its name in the template.
        source: what it is, without its name.
        sub_path: the folder of the volume that is mounted; empty is the whole of it.
        is_read_only: whether the mount says so; the volume itself may be one that is not written.
    """

    path: str
    volume: str
    source: Mapping[str, Any]
    sub_path: str = ""
    is_read_only: bool = False

    @property
    def may_be_written(self) -> bool:
        """Whether its container may write it."""
        is_refused = any(isinstance(kind, Mapping) and kind.get("readOnly") is True for kind in self.source.values())
        return not (self.is_read_only or is_refused or self.source.keys() & _NEVER_WRITTEN)

    @property
    def ends_with_pod(self) -> bool:
        """Whether it lives as long as its pod: by name, or because the API server makes it an emptyDir."""
        return not self.source or bool(self.source.keys() & _WITH_POD)

    def place_of(self, folder: str) -> str:
        """What distinguishes a folder of the container from all others, by whichever path it is mounted."""
        below = posixpath.normpath(posixpath.join("/", self.sub_path.lstrip("/"), posixpath.relpath(folder, self.path)))
        claim = self.source.get("persistentVolumeClaim")
        if isinstance(claim, Mapping):
            return f"persistentVolumeClaim/{claim.get('claimName')}:{below}"
        return f"{_text(_without_values(self.source))}:{below}"


def mount_of(template: Mapping[str, Any], folder: str, container: str = names.WORKER_CONTAINER) -> Mount | None:
    """The volume that has a folder of a container, the one that is mounted deepest; None without one.

    One that may not be written hides those above it as well.
    """
    below = [mount for mount in _mounts(template, container) if _is_below(folder, mount.path)]
    return max(below, key=lambda mount: len(mount.path), default=None)


def ambiguous_mount(template: Mapping[str, Any], folder: str, container: str = names.WORKER_CONTAINER) -> str | None:
    """Why a template does not tell which volume a folder is in; None where it does, or mounts none there.

    Two mounts whose paths are written differently are two to the API server, and the later one hides the other.
    """
    around = [(_clean(mount), mount) for mount in _mounts_of(template, container)]
    around = [(path, mount) for path, mount in around if _is_below(folder, path)]
    deepest = max((path for path, _ in around), key=len, default="")
    found = [mount for path, mount in around if path == deepest]
    if len(found) > 1:
        shown = " and ".join(repr(str(mount.get("mountPath"))[:256]) for mount in found)
        return f"mounts {len(found)} volumes at {deepest}, as {shown}: leave one of them"
    if found and found[0].get("subPathExpr"):
        shown = str(found[0]["subPathExpr"])[:256]
        return f"mounts {deepest!r} by subPathExpr {shown!r}, which may be another folder in each pod: use subPath"
    return None


def unwritable_mount(mount: Mount) -> str:
    """What is to be said of a volume in which files are to be, and that may not be written."""
    return (
        f"volume {mount.volume!r}, mounted at {mount.path}, may not be written: take readOnly out, or mount a volume "
        "there that may be, such as a persistentVolumeClaim"
    )


def hidden_by(template: Mapping[str, Any], folder: str, container: str) -> str | None:
    """The path of a mount below a folder of a container: a part of the folder would be in another volume."""
    return next((path for path in mount_paths(template, container) if path != folder and _is_below(path, folder)), None)


def mount_paths(template: Mapping[str, Any], container: str) -> tuple[str, ...]:
    """The folders at which a template mounts volumes into a container."""
    return tuple(_clean(mount) for mount in _mounts_of(template, container))


def volume_names(template: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the volumes of a template."""
    found = (item.get("name") for item in _items(template.get("spec"), "volumes"))
    return tuple(name for name in found if isinstance(name, str))


def _clean(mount: Mapping[str, Any]) -> str:
    """The folder of a mount, however it is written."""
    return posixpath.normpath("/" + str(mount.get("mountPath")).lstrip("/"))


def _mounts_of(template: Mapping[str, Any], wanted: str) -> Sequence[Mapping[str, Any]]:
    """The mounts of a container."""
    found = (one for one in _items(template.get("spec"), "containers") if one.get("name") == wanted)
    return [mount for one in found for mount in _items(one, "volumeMounts")]


def _mounts(template: Mapping[str, Any], wanted: str) -> Iterator[Mount]:
    """The volumes that a pod template adds to a container."""
    spec = template.get("spec")
    volumes = {item.get("name"): item for item in _items(spec, "volumes") if isinstance(item.get("name"), str)}
    for mount in _mounts_of(template, wanted):
        name = mount.get("name")
        if isinstance(name, str) and name in volumes:
            volume = volumes[name]
            path = _clean(mount)
            source = {field: value for field, value in volume.items() if field != "name" and value is not None}
            below = str(mount.get("subPath") or mount.get("subPathExpr") or "")
            yield Mount(path, str(volume.get("name")), source, below, bool(mount.get("readOnly")))


def _without_values(source: Mapping[str, Any]) -> dict[str, Any]:
    """The source of a volume, with a hash in place of what it tells its driver, such as a key of a store."""
    shown = dict(source)
    for kind, field in _FOR_DRIVERS.items():
        driver = shown.get(kind)
        if isinstance(driver, Mapping) and driver.get(field):
            shown[kind] = {**driver, field: hashlib.sha256(_text(driver[field]).encode()).hexdigest()[:16]}
    return shown


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _items(of: Any, field: str) -> Sequence[Mapping[str, Any]]:
    """The maps in a list of a template."""
    found = of.get(field) if isinstance(of, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _is_below(folder: str, mount: str) -> bool:
    return mount != "/" and (folder == mount or folder.startswith(f"{mount}/"))
