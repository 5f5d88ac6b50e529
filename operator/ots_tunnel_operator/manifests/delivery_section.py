"""The delivery settings of an object as the section of the worker's document. Pure."""

from __future__ import annotations

from typing import Any

from ots_tunnel_operator.api.delivery import Delivery
from ots_tunnel_operator.api.secrets import DEAD_LETTERS
from ots_tunnel_operator.api.selection import Columns, Filter, KeyRange
from ots_tunnel_operator.manifests.sink_section import store_section


def delivery_section(delivery: Delivery) -> dict[str, Any]:
    """Return the document's `delivery`; what has no effect is left out, so that adding it rolls no pod."""
    section: dict[str, Any] = {
        "batchMaxRows": delivery.batch_max_rows,
        "batchMaxBytes": delivery.batch_max_bytes,
        "retry": delivery.retry.model_dump(by_alias=True),
        "onPermanentError": delivery.on_permanent_error,
    }
    if delivery.columns is not None and delivery.columns != Columns():
        section["columns"] = delivery.columns.model_dump()
    if delivery.filter is not None and delivery.filter != Filter():
        section["filter"] = _filter(delivery.filter)
    if delivery.rate_limit is not None and (limit := delivery.rate_limit.rows_per_second_per_worker):
        # the document is that of one worker
        section["rateLimit"] = {"rowsPerSecond": limit}
    if delivery.dead_letter is not None:
        section["deadLetter"] = {"files": store_section(delivery.dead_letter.files, DEAD_LETTERS)}
    return section


def _filter(chosen: Filter) -> dict[str, Any]:
    section: dict[str, Any] = {"actions": chosen.actions, "keyPrefix": chosen.key_prefix}
    if chosen.key_range is not None:
        section["keyRange"] = _range(chosen.key_range)
    return section


def _range(chosen: KeyRange) -> dict[str, Any]:
    return {
        "begin": [bound.value() for bound in chosen.begin],
        "end": [bound.value() for bound in chosen.end],
    }
