"""What this minor of PySpark lacks is refused in one line, in a real session; what it has is not."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyspark
import pytest

from ots_tunnel.spark import register
from ots_tunnel.spark.versions import PUSH_DOWN_SETTING, Ability, minor_of

from .conftest import Instance

# one process: one session
pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.lasts(3)]


def place(instance: Instance, **more: str) -> dict[str, str]:
    options = {"endpoint": instance.endpoint, "instance": "demo", "table": "flights", **more}
    return {"credentialsDirectory": str(instance.secrets), **options}


def refused(ability: Ability) -> AbstractContextManager[Any]:
    """Where this minor lacks an ability: one line that names the version."""
    if minor_of(pyspark.__version__) >= ability.least:
        return nullcontext()
    return pytest.raises(Exception, match=f"{ability.asked}: found PySpark {pyspark.__version__}, allowed are ")


def test_reading_a_stream(spark: Any, instance: Instance) -> None:
    """A tunnel that does not exist: what reads a stream gets as far as describing the table."""
    register(spark)

    frame = spark.readStream.format("ots").options(**place(instance, tunnel="none")).load()

    assert "action" in frame.columns


def test_pushing_filters(spark: Any, instance: Instance) -> None:
    with refused(Ability.PUSH_DOWN):
        register(spark, push_filters=True)
    try:
        with refused(Ability.PUSH_DOWN):
            frame = spark.read.format("ots").options(**place(instance, pushFilters="true", columns="")).load()
            assert frame.where("carrier = 'c01' AND flight = 1").count() == 1
    finally:
        spark.conf.unset(PUSH_DOWN_SETTING)
