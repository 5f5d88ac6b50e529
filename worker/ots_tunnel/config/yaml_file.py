"""A YAML file of settings, read strictly: a name that is given twice would silently lose one of its values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ots_tunnel.errors import ConfigError


class _StrictLoader(yaml.SafeLoader):
    """YAML's plain types, and no name twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping.

        Raises:
            yaml.YAMLError: it has a name twice.
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
    """What the file holds.

    Raises:
        ConfigError: it cannot be read, or is no YAML; says the line, but does not repeat it: it may hold a secret.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _StrictLoader)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.reader.ReaderError):
        raise ConfigError(f"{path}: found bytes that are no text, allowed is YAML in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" line {mark.line + 1}, column {mark.column + 1}:" if mark is not None else ""
        raise ConfigError(f"{path}:{where} no YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # a date such as 2026-13-01
        raise ConfigError(f"{path}: no YAML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: no YAML of settings: too deep") from None
