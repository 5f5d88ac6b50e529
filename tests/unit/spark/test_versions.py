"""What minors of PySpark are refused, and for what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark import register
from ots_tunnel.spark.versions import Ability, bounds_streams, minor_of, require

#: The first minor without an ability, the first that has it, and words of the sentence.
CASES = [
    (Ability.BATCH, "3.5.9", "4.0.0", "format 'ots': found PySpark 3.5.9, allowed are 4.0 and newer: Spark 3 has no"),
    (
        Ability.PUSH_DOWN,
        "4.0.5",
        "4.1.0",
        "option 'pushFilters': found PySpark 4.0.5, allowed are 4.1 and newer: .*'where'",
    ),
]


@pytest.mark.parametrize(("ability", "old", "new", "message"), CASES)
def test_what_a_minor_lacks_is_one_line_with_the_way_out(ability: Ability, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        require(ability, old)
    assert len(str(caught.value).splitlines()) == 1
    require(ability, new)
    require(ability, "10.0.0")


def test_a_version_of_a_vendor_counts_by_its_numbers() -> None:
    assert minor_of("4.1.0.dev3+vendor") == (4, 1)
    with pytest.raises(ConfigError, match="found version 'latest'"):
        minor_of("latest")


@pytest.mark.parametrize(("version", "bounds"), [("4.0.5", False), ("4.1.4", False), ("4.2.0", True), ("10.0", True)])
def test_spark_bounds_a_stream_from_one_minor_on(version: str, bounds: bool) -> None:
    assert bounds_streams(version) is bounds


def test_a_server_of_spark_3_is_refused_before_anything_is_registered() -> None:
    server: Any = SimpleNamespace(version="3.5.2")

    with pytest.raises(ConfigError, match=r"found PySpark 3\.5\.2, allowed are"):
        register(server)


def test_pyspark_3_beside_the_package_is_refused_by_a_sentence(tmp_path: Path) -> None:
    """As it is there: without the module of data sources, and with a session that has no `dataSource`."""
    package = tmp_path / "pyspark"
    (package / "sql").mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '3.5.9'")
    (package / "sql" / "__init__.py").touch()
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"

    for line in (
        "from ots_tunnel.spark import register; register(type('Session', (), {'version': '3.5.9'})())",
        "import ots_tunnel.spark.source",
    ):
        ended = subprocess.run([sys.executable, "-c", program + line], capture_output=True, text=True, check=False)

        last = ended.stderr.splitlines()[-1]
        assert last.startswith("ots_tunnel.errors.ConfigError: format 'ots': found PySpark 3.5.9, allowed are 4.0")
        assert "Parquet" in last


@pytest.mark.parametrize(
    ("version", "options", "message"),
    [
        ("4.0.5", {"pushFilters": "true"}, r"option 'pushFilters': found PySpark 4\.0\.5"),
    ],
)
def test_the_source_refuses_what_its_pyspark_lacks_before_any_call(
    monkeypatch: pytest.MonkeyPatch, version: str, options: dict[str, str], message: str
) -> None:
    from pyspark.sql.types import StructType

    from ots_tunnel.spark.source import TablestoreDataSource, pyspark

    monkeypatch.setattr(pyspark, "__version__", version)
    place = {"endpoint": "http://127.0.0.1:1", "instance": "demo", "table": "flights"}
    source = TablestoreDataSource({**place, **options})

    with pytest.raises(ConfigError, match=message):
        source.schema()
    with pytest.raises(ConfigError, match=message):
        source.reader(StructType())


def test_registering_switches_the_setting_of_filters_on_where_there_is_one() -> None:
    settings: dict[str, str] = {}
    registered: list[type] = []
    session: Any = SimpleNamespace(
        version="4.0.5",
        conf=SimpleNamespace(set=settings.__setitem__),
        dataSource=SimpleNamespace(register=registered.append),
    )

    with pytest.raises(ConfigError, match="option 'pushFilters': found PySpark"):
        register(session, push_filters=True)
    register(session)
    assert (settings, len(registered)) == ({}, 1)

    session.version = "4.1.0"
    register(session, push_filters=True)
    assert settings == {"spark.sql.python.filterPushdown.enabled": "true"}
