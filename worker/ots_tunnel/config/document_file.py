"""Documents as files: how YAML becomes a checked model, and a model YAML.

A worker whose document another process checks (`ots_tunnel.checking`) imports this module, and calls none of it: the
functions import what they need.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from ots_tunnel.config.base import ConfigModel
from ots_tunnel.errors import ConfigError

_Document = TypeVar("_Document", bound=ConfigModel)


def load_document(path: Path, model: type[_Document]) -> _Document:
    """Read and check a document.

    Raises:
        ConfigError: the file is missing or not YAML, or fields are wrong; names each wrong field with the value found
            and the values allowed.
    """
    from ots_tunnel.config.yaml_file import read_yaml

    return checked(path, read_yaml(path), model)


def checked(path: Path, document: Any, model: type[_Document]) -> _Document:
    """Check a document that was read.

    Args:
        path: for the message.

    Raises:
        ConfigError: fields are wrong, see `load_document`.
    """
    from pydantic import ValidationError

    from ots_tunnel.config.messages.describing import describe

    try:
        return model.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError(f"{path}: {describe(error, model)}") from error


def dump_document(document: ConfigModel) -> str:
    """The document as YAML, such as for the operator's ConfigMap; equal documents give equal text."""
    import yaml

    return yaml.safe_dump(document.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True)
