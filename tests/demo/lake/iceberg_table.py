"""A mirror in Iceberg, read by a pod of its image: this process has another Spark, for which Iceberg has no jar.

The pod reads the table by its path, as any engine would, without our package. The path is that of the volume in driver
and executors, because files of Iceberg name each other by it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.demo.kube import DemoError, Kube, wait_until
from tests.demo.lake.comparison import Row
from tests.demo.lake.rows import mirrored_row
from tests.demo.lake.volumes import FILES, MOUNT, Volumes

#: Name of the pod and of its program's ConfigMap.
READER = "iceberg-reader"
_PROGRAM = Path(__file__).with_name("iceberg_program.py")
_ROWS = "rows.jsonl"
#: Seconds for the pod, whose session begins on a busy machine.
_PATIENCE = 600


@dataclass(frozen=True)
class IcebergTable:
    """The table of a folder in the volume of files.

    Args:
        folder: below the volume.
        key: names of the key's columns.
        image: with Iceberg.
    """

    kube: Kube
    volumes: Volumes
    folder: str
    key: Sequence[str]
    image: str

    def rows(self) -> Iterator[Row]:
        """Yield key, and value and version of each attribute, in the order of the keys.

        Raises:
            DemoError: the pod does not end well.
        """
        self._read()
        with (self.volumes.files / _ROWS).open() as lines:
            for line in lines:
                yield mirrored_row(json.loads(line, object_hook=_bytes), self.key)

    def answers(self) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
        """See `DeltaTable.answers`; the pod answers nothing."""
        return iter(())

    def close(self) -> None:
        """Remove the pod."""
        self._kubectl("delete", "pod,configmap", READER, "--ignore-not-found", "--wait=false")

    def _read(self) -> None:
        metadata = {"name": READER, "namespace": self.volumes.namespace}
        program = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        self.kube.apply(program | {"data": {_PROGRAM.name: _PROGRAM.read_text()}}, self._pod(metadata))
        wait_until("the pod has read the table", self._has_ended, _PATIENCE, lambda: self._kubectl("logs", READER))

    def _has_ended(self) -> bool:
        phase = self._kubectl("get", "pod", READER, "-o", "jsonpath={.status.phase}")
        if phase == "Failed":
            raise DemoError(f"the pod {READER} has failed: {self._kubectl('logs', READER)[-2000:]}")
        return phase == "Succeeded"

    def _pod(self, metadata: dict[str, Any]) -> dict[str, Any]:
        words = (f"file://{MOUNT}/{self.folder}", ",".join(self.key), f"{MOUNT}/{_ROWS}")
        container = {
            "name": "reader",
            "image": self.image,
            "command": ["tini", "--", "python3", f"/program/{_PROGRAM.name}", *words],
            "volumeMounts": [{"name": "files", "mountPath": MOUNT}, {"name": "program", "mountPath": "/program"}],
        }
        volumes = [
            {"name": "files", "persistentVolumeClaim": {"claimName": FILES}},
            {"name": "program", "configMap": {"name": READER}},
        ]
        spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _kubectl(self, *words: str) -> str:
        return self.kube.kubectl("-n", self.volumes.namespace, *words)


def _bytes(found: dict[str, Any]) -> Any:
    return bytes.fromhex(found["hex of bytes"]) if found.keys() == {"hex of bytes"} else found
