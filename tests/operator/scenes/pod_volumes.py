"""The volumes of a pod as folders on this machine, as a kubelet mounts them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ots_tunnel_operator import names
from tests.operator.scenes.operator_scene import OperatorScene


class PodVolumes:
    """Fills a folder for each volume of a pod, below one folder.

    Args:
        scene: whose API server has the Secrets and ConfigMaps.
        folder: where the folders are made.
    """

    def __init__(self, scene: OperatorScene, folder: Path) -> None:
        self._scene = scene
        self._folder = folder

    def mount(self, pod_spec: Mapping[str, Any]) -> dict[str, Path]:
        """Fill the volumes, and return the folder of each path at which the worker's container mounts one."""
        made = {volume["name"]: self._made(volume) for volume in pod_spec["volumes"]}
        (worker,) = [item for item in pod_spec["containers"] if item["name"] == names.WORKER_CONTAINER]
        return {mount["mountPath"]: made[mount["name"]] for mount in worker["volumeMounts"]}

    def _made(self, volume: Mapping[str, Any]) -> Path:
        folder = self._folder / "volumes" / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        if "secret" in volume:
            data = self._read("Secret", volume["secret"]["secretName"])["data"]
            files = {key: base64.b64decode(value) for key, value in data.items()}
            self._write(folder, files, volume["secret"].get("items"))
        elif "configMap" in volume:
            data = self._read("ConfigMap", volume["configMap"]["name"])["data"]
            self._write(folder, {key: text.encode() for key, text in data.items()}, None)
        return folder

    def _read(self, kind: str, name: str) -> dict[str, Any]:
        found = self._scene.kube.get(kind, self._scene.namespace, name)
        assert found is not None, f"{kind} {name}: a kubelet would wait for it"
        return found

    def _write(self, folder: Path, files: Mapping[str, bytes], items: list[dict[str, str]] | None) -> None:
        wanted = {key: key for key in files} if items is None else {item["key"]: item["path"] for item in items}
        for key, path in wanted.items():
            (folder / path).write_bytes(files[key])


def moved(value: Any, folders: Mapping[str, Path]) -> Any:
    """A document with the paths in a pod replaced by those of the folders; also in addresses `file://PATH`."""
    if isinstance(value, dict):
        return {key: moved(inner, folders) for key, inner in value.items()}
    if isinstance(value, list):
        return [moved(inner, folders) for inner in value]
    if not isinstance(value, str):
        return value
    scheme, path = ("file://", value[7:]) if value.startswith("file://") else ("", value)
    for mount, folder in folders.items():
        if path == mount or path.startswith(f"{mount}/"):
            return f"{scheme}{folder}{path[len(mount) :]}"
    return value
