"""The volumes of a query on the one node of the cluster, and what its committed files say.

A volume is a folder of this machine, which is the node. Spark names the files of its committed batches in the log
`_spark_metadata`: batch N adds the file N, and every tenth one, `N.compact`, repeats all before. Files that it does
not name belong to batches that were interrupted and repeated, and do not count.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

Change = dict[str, Any]
#: Where driver and executors see the folder of files.
MOUNT = "/lake"
_BATCH = re.compile(r"([0-9]+)(\.compact)?")


@dataclass(frozen=True)
class Lake:
    """Two folders below `root`, and the claims by which pods have them.

    Args:
        namespace: of the claims.
    """

    root: Path
    namespace: str

    @property
    def files(self) -> Path:
        """The folder of the claim `lake-files`."""
        return self.root / "files"

    def manifests(self) -> Iterator[dict[str, Any]]:
        """Make the folders, and return a volume and a claim for each, bound to one another."""
        for name, mode in (("lake-files", "ReadWriteMany"), ("lake-checkpoint", "ReadWriteOnce")):
            folder = self.root / name.removeprefix("lake-")
            folder.mkdir(parents=True)
            folder.chmod(0o777)  # no group is given to a folder of the node
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

    def changes(self) -> list[Change]:
        """Return the lines of all committed files, batch by batch."""
        lines: list[Change] = []
        for path in self._committed():
            with gzip.open(path, "rt") as file:
                lines.extend(map(json.loads, file))
        return lines

    def _committed(self) -> Iterator[Path]:
        folder = self.files / "changes" / "_spark_metadata"
        names = [found for path in folder.glob("*") if (found := _BATCH.fullmatch(path.name))]
        compact = max((int(found[1]) for found in names if found[2]), default=-1)
        # the compacted file holds what was before it, and its own batch
        log = [(int(found[1]), found[0]) for found in names if int(found[1]) > compact or found[2]]
        for _, name in sorted(one for one in log if one[0] >= compact):
            for line in folder.joinpath(name).read_text().splitlines()[1:]:  # the first one is the log's version
                seen = unquote(urlparse(json.loads(line)["path"]).path)
                yield self.files / Path(seen).relative_to(MOUNT)
