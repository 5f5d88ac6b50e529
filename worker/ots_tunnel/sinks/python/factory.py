"""Imports the processor factory that a document names as `package.module:name`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, cast

from ots_tunnel.errors import ConfigError
from ots_tunnel.forks.ending import leaving_ends_a_child
from ots_tunnel.processor import ProcessorFactory

FIELD = "sink.python.factory"
_WHERE = (
    "; modules are looked for in the folders of PYTHONPATH, then among the installed packages, not in the working "
    "directory"
)


def load_factory(name: str) -> ProcessorFactory:
    """Import a factory, or call the function that makes one.

    Raises:
        ConfigError: the module cannot be imported, or the name is missing or not a factory.
    """
    module_name, _, attribute = name.partition(":")
    try:
        with leaving_ends_a_child():
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # importing runs the user's code, which may raise anything
        where = _WHERE if isinstance(error, ModuleNotFoundError) else ""
        raise ConfigError(
            f"{FIELD}: {module_name!r} cannot be imported: {type(error).__name__}: {error}{where}"
        ) from error
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise ConfigError(f"{FIELD}: module {module_name!r} has no {attribute!r}") from None
    if not _is_factory(found) and callable(found):
        found = _made_by(found, name)
    if not _is_factory(found):
        raise ConfigError(
            f"{FIELD}: {name!r} is a {type(found).__name__}, allowed is a ProcessorFactory, such as "
            "SimpleProcessorFactory(process), or a function without arguments that returns one"
        )
    return cast("ProcessorFactory", found)


def _made_by(function: Callable[[], Any], name: str) -> Any:
    try:
        with leaving_ends_a_child():
            return function()
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{FIELD}: {name!r} raised {type(error).__name__}: {error}") from error


def _is_factory(found: object) -> bool:
    return not isinstance(found, type) and callable(getattr(found, "create", None)) and hasattr(found, "custom_value")
