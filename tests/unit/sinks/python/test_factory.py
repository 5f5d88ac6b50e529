from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ots_tunnel.config import WorkerConfig
from ots_tunnel.errors import ConfigError
from ots_tunnel.processor import SimpleProcessorFactory
from ots_tunnel.sinks.choice import open_sink
from ots_tunnel.sinks.python.factory import load_factory
from ots_tunnel.sinks.python.sink import ProcessorSink

MODULE = """
import sys
from ots_tunnel import SimpleProcessorFactory

def process(context, records):
    pass

factory = SimpleProcessorFactory(process, custom_value=7)

def make():
    return factory

def broken():
    raise RuntimeError("no database")

def exits():
    sys.exit(0)

number = 5

def takes(context, records):
    yield from records

async def takes_async(context, records):
    yield

def lazy():
    return SimpleProcessorFactory(takes)

def lazy_async():
    return SimpleProcessorFactory(process, shutdown=takes_async)
"""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_processors.py").write_text(MODULE)
    (tmp_path / "shop_broken.py").write_text("import no_such_library")
    (tmp_path / "shop_exits.py").write_text("raise SystemExit(0)")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "shop_processors", raising=False)


@pytest.mark.parametrize("name", ["factory", "make"])
def test_a_factory_or_the_function_that_makes_one(name: str) -> None:
    factory = load_factory(f"shop_processors:{name}")

    assert isinstance(factory, SimpleProcessorFactory)
    assert factory.custom_value == 7


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shop_nothing:factory", "'shop_nothing' cannot be imported: ModuleNotFoundError"),
        (
            "shop_broken:factory",
            "'shop_broken' cannot be imported: ModuleNotFoundError: No module named 'no_such_library'",
        ),
        ("shop_exits:factory", "'shop_exits' cannot be imported: SystemExit: 0"),
        ("shop_processors:exits", "'shop_processors:exits' raised SystemExit: 0"),
        ("shop_processors:absent", "module 'shop_processors' has no 'absent'"),
        ("shop_processors:number", "is a int, allowed is a ProcessorFactory"),
        ("shop_processors:process", "raised TypeError"),
        ("shop_processors:broken", "'shop_processors:broken' raised RuntimeError: no database"),
        ("shop_processors:lazy", "raised ConfigError: process: found a generator function, 'takes', of which nothing"),
        ("shop_processors:lazy_async", "raised ConfigError: shutdown: found a generator function, 'takes_async', of"),
    ],
)
def test_a_wrong_factory_is_named(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"^sink\.python\.factory: ") as raised:
        load_factory(name)
    assert message in str(raised.value)


def test_the_document_names_the_factory(tmp_path: Path) -> None:
    instance = {"endpoint": "http://x", "instance": "i", "credentials": {"directory": str(tmp_path)}}
    source = {**instance, "table": "t", "tunnelName": "n", "tunnelId": "id"}
    config = WorkerConfig.model_validate({"source": source, "sink": {"python": {"factory": "shop_processors:make"}}})

    assert isinstance(open_sink(config), ProcessorSink)
