"""Write into the README what the code says itself: both machines, exit codes, settings, and what was measured.

    python -m tests.golden.fill_readme

Each part stands between two marks that name it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ots_tunnel.config import ClientConfig, ConfigModel, DeliveryConfig, HttpConfig, RetryConfig
from ots_tunnel.console.exit_codes import exit_code_table
from tests.bench.readme import speed
from tests.golden.draw_channel_machine import client_picture, picture

README = Path(__file__).resolve().parents[2] / "README.md"


def codes() -> str:
    """The exit codes as a table."""
    rows = (f"| {code} | {meaning} |\n" for code, meaning in exit_code_table())
    return "| exit code | meaning |\n|---|---|\n" + "".join(rows)


def settings() -> str:
    """Settings that are plain values, by their section, with their defaults."""
    rows = ["| section | settings |", "|---|---|"]
    for section, model in SECTIONS.items():
        plain = {
            field.alias: field.default
            for field in model.model_fields.values()
            if isinstance(field.default, int | float | str)
        }
        rows.append(f"| `{section}` | {', '.join(f'`{name}: {_shown(value)}`' for name, value in plain.items())} |")
    return "\n".join(rows) + "\n"


def _shown(value: object) -> str:
    return value or '""' if isinstance(value, str) else str(value)


SECTIONS: Mapping[str, type[ConfigModel]] = {
    "client": ClientConfig,
    "delivery": DeliveryConfig,
    "delivery.retry": RetryConfig,
    "http": HttpConfig,
}

PARTS: Mapping[str, Callable[[], str]] = {
    "channel machine": picture,
    "client machine": client_picture,
    "exit codes": codes,
    "settings": settings,
    "speed": speed,
}


def filled(readme: str) -> str:
    """The README with the parts of now.

    Raises:
        ValueError: it has no place for one.
    """
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, found, rest = readme.partition(begin)
        _, ended, after = rest.partition(end)
        if not (found and ended):
            raise ValueError(f"{README.name} lacks {begin.strip()} or {end.strip()}")
        readme = before + begin + part() + end + after
    return readme


if __name__ == "__main__":
    README.write_text(filled(README.read_text()))
    sys.exit(0)
