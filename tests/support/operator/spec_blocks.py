"""Blocks of a spec, as changes of `tunnel_object`."""

from __future__ import annotations

from typing import Any

from tests.support.operator.objects import tunnel_object
from tests.support.operator.query_worlds import BY_QUERY

STREAM: dict[str, Any] = {"source__tunnel__type": "Stream"}
SPARK: dict[str, Any] = {"engine__baseData": "Spark"}
LEASED: dict[str, Any] = {"source__tunnel": None, "source__stream": {"leaseTable": "leases"}}
STDOUT: dict[str, Any] = {"sink__tablestore": None, "sink__stdout": {}}
KEYS: dict[str, Any] = {"secretRef": {"name": "store-keys"}}
BUCKET: dict[str, Any] = {"url": "s3://shop/orders", "credentials": KEYS}
SASL: dict[str, Any] = {"mechanism": "PLAIN", "secretRef": {"name": "login"}}
KAFKA: dict[str, Any] = {"bootstrapServers": ["broker-1.shop:9092"], "topic": "orders"}
HOOK: dict[str, Any] = {"url": "https://hooks.shop.example/orders?shop=1"}
FILES: dict[str, Any] = {"sink": {"files": BUCKET}}
PARQUET: dict[str, Any] = BUCKET | {"format": "Parquet"}
PRICE: dict[str, Any] = {"name": "price", "type": "double"}
TYPED: dict[str, Any] = PARQUET | {"columns": [PRICE]}
LAKE: dict[str, Any] = BY_QUERY["sink"]["files"]
LEASED_SOURCE: dict[str, Any] = {
    **{key: value for key, value in tunnel_object()["spec"]["source"].items() if key != "tunnel"},
    "stream": {"leaseTable": "leases"},
}
START, END = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
