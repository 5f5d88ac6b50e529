"""Strict reading of a YAML file: a repeated name is an error, because one of its values would be lost silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ots_tunnel.errors import ConfigError


class _StrictLoader(yaml.SafeLoader):
    """Plain YAML types, without repeated names."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping.

        Raises:
            yaml.YAMLError: a name is repeated.
        """
        seen: set[str] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge" else None
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{name} is given twice", key.start_mark)
            if name is not None:
                seen.add(name)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """Content of a YAML file.

    Raises:
        ConfigError: the file cannot be read or is not YAML; names the line without its text, which may be a secret.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.reader.ReaderError):
        raise ConfigError(f"{path}: found bytes that are not text, allowed is YAML in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" line {mark.line + 1}, column {mark.column + 1}:" if mark is not None else ""
        raise ConfigError(f"{path}:{where} not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # a date such as 2026-13-01
        raise ConfigError(f"{path}: not YAML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not YAML of settings: too deep") from None
