"""Where a query's credentials come from: mounted files, the environment, or a class of the user.

Spark shows options, in plans, its UI and event logs. So an option names a place, and each process, the planner's and
those of executors, takes the keys from there by itself: they are neither in a plan nor in what is sent to executors.
"""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from pathlib import Path
from typing import Final

from ots_tunnel.connections.environment import KEY_ID, KEY_SECRET, environment_origin
from ots_tunnel.credentials import CredentialsProvider, FileCredentials
from ots_tunnel.errors import ConfigError
from ots_tunnel.model import Credentials

#: The value of `credentialsProvider` that names no class.
ENVIRONMENT: Final = "environment"


def credentials_of(directory: str, provider: str) -> CredentialsProvider:
    """The provider that the options name.

    Args:
        directory: folder of the files, used where `provider` is empty.
        provider: `environment`, or the dotted name of a class; empty for files.

    Raises:
        ConfigError: there are no credentials at this place; names the option, never a key.
    """
    if not provider:
        return FileCredentials(Path(directory)).checked("option 'credentialsDirectory'")
    if provider == ENVIRONMENT:
        found = environment_origin(os.environ).credentials
        if found is None:
            raise ConfigError(f"option 'credentialsProvider': {KEY_ID} and {KEY_SECRET} are not set in this process")
        return found
    return _checked(provider, _provider_of(provider))


def _provider_of(name: str) -> CredentialsProvider:
    module, _, word = name.rpartition(".")
    try:
        found = getattr(import_module(module), word)
    except (ImportError, AttributeError, ValueError, TypeError):  # TypeError: a name that begins with two dots
        raise ConfigError(
            f"option 'credentialsProvider': found {name!r}, which cannot be imported in this process, allowed are "
            f"{ENVIRONMENT} and the dotted name of a class"
        ) from None
    if not isinstance(found, type):
        raise ConfigError(f"option 'credentialsProvider': found {name!r}, which is no class")
    if not _takes_nothing(found):
        raise ConfigError(f"option 'credentialsProvider': found {name!r}, which cannot be created without arguments")
    provider = found()
    if not callable(provider):
        raise ConfigError(f"option 'credentialsProvider': objects of {name!r} cannot be called")
    called: CredentialsProvider = provider
    return called


def _takes_nothing(kind: type) -> bool:
    """Whether objects of a class can be made without arguments, as far as its signature tells."""
    try:
        inspect.signature(kind).bind()
    except TypeError:
        return False
    except ValueError:
        return True  # a class in C without a signature
    return True


def _checked(name: str, provider: CredentialsProvider) -> CredentialsProvider:
    def credentials() -> Credentials:
        found = provider()
        if not isinstance(found, Credentials):
            kind = type(found).__name__
            raise ConfigError(f"option 'credentialsProvider': {name} returned {kind}, allowed is Credentials")
        return found

    return credentials
