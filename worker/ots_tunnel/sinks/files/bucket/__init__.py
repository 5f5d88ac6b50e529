"""Files in a bucket of an S3-compatible store, OSS included."""

from __future__ import annotations

from ots_tunnel.sinks.files.bucket.store import PART_BYTES, BucketStore

__all__ = ["PART_BYTES", "BucketStore"]
