"""A bucket in the place of the volume of files: a store that speaks S3, beside the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Secret with the keys.
SECRET = "bucket-credentials"
_PREFIX = "lake/flights"


@dataclass(frozen=True)
class Bucket:
    """A bucket and its keys.

    Args:
        name: of the bucket.
        endpoint: of the store for pods, and for this process.
        key, secret: of the store.
    """

    name: str
    endpoint: str
    key: str
    secret: str

    @property
    def files(self) -> dict[str, Any]:
        """The place in `sink.files`."""
        credentials = {"secretRef": {"name": SECRET}}
        return {"url": f"s3://{self.name}/{_PREFIX}", "endpoint": self.endpoint, "credentials": credentials}

    @property
    def place(self) -> str:
        """The table for a Spark of this process."""
        return f"s3a://{self.name}/{_PREFIX}"

    @property
    def settings(self) -> dict[str, str]:
        """What a Spark of this process needs to read it."""
        found = {
            "endpoint": self.endpoint,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": self.key,
            "secret.key": self.secret,
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in found.items()}

    def manifest(self, namespace: str) -> dict[str, Any]:
        """The Secret."""
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": namespace},
            "stringData": {"accessKeyId": self.key, "accessKeySecret": self.secret},
        }
