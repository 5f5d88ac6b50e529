"""The volumes of a query on the one node of the local cluster: folders of this machine, which is the node."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Claims of the files and of the checkpoints.
FILES, CHECKPOINT = "lake-files", "lake-checkpoint"
#: Where driver and executors see the folder of files.
MOUNT = "/lake"


@dataclass(frozen=True)
class Volumes:
    """Two folders below `root`, and the claims by which pods have them.

    Args:
        namespace: of the claims.
    """

    root: Path
    namespace: str

    @property
    def files(self) -> Path:
        """The folder of files."""
        return self.root / FILES

    def manifests(self) -> Iterator[dict[str, Any]]:
        """Make the folders, without what an earlier run left, and return a volume and a claim for each."""
        for name, mode in ((FILES, "ReadWriteMany"), (CHECKPOINT, "ReadWriteOnce")):
            folder = self.root / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            folder.chmod(0o777)  # Kubernetes gives no group to a folder of the node
            size = {"storage": "1Gi"}
            volume = {
                "capacity": size,
                "accessModes": [mode],
                "storageClassName": "",
                "hostPath": {"path": str(folder)},
                "claimRef": {"name": name, "namespace": self.namespace},
            }
            claim = {"accessModes": [mode], "storageClassName": "", "volumeName": name, "resources": {"requests": size}}
            yield {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume}
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": claim,
            }
