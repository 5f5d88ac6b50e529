"""Settings of Spark that a field of the object has: in `spec.spark.conf` they would be taken, and change nothing. Pure.

The Spark operator puts what stands in the fields of a SparkApplication over its settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

_FIELDS: Final = {
    "spark.driver.cores": "spec.spark.driver.cores",
    "spark.driver.memory": "spec.spark.driver.memory",
    "spark.executor.cores": "spec.spark.executor.cores",
    "spark.executor.instances": "spec.spark.executor.instances",
    "spark.executor.memory": "spec.spark.executor.memory",
    "spark.kubernetes.container.image": "spec.spark.image",
    "spark.kubernetes.driver.container.image": "spec.spark.image",
    "spark.kubernetes.driver.podTemplateFile": "spec.spark.driver.podTemplate",
    "spark.kubernetes.executor.container.image": "spec.spark.image",
    "spark.kubernetes.executor.podTemplateFile": "spec.spark.executor.podTemplate",
}


def settings_of_fields(conf: Mapping[str, str]) -> Iterator[str]:
    """What is to be said of each such setting of an object."""
    for name, value in conf.items():
        if name in _FIELDS:
            yield f"spec.spark.conf: found {name} {value[:256]!r}, allowed is the field {_FIELDS[name]} in its place"
