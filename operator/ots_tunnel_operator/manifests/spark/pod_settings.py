"""What `spec.spark.conf` may not set, because the operator would lose sight of the pods of an application. Pure.

Whether a driver or a task still writes is told by the pods of the namespace that have the labels of the Spark operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_HIDES: Final = re.compile(
    r"spark\.kubernetes\.(?:(?:driver|executor)\.label\.(?:sparkoperator\.k8s\.io/.*|spark-(?:role|app-selector))"
    r"|namespace|context)|spark\.master"
)


def hidden_pods(conf: Mapping[str, str]) -> Iterator[str]:
    """What is to be said of each such setting of an object."""
    for name in filter(_HIDES.fullmatch, conf):
        yield (
            f"spec.spark.conf: found {name}, allowed is none: by it the operator finds the pods, and knows whether one "
            "of them still writes"
        )
