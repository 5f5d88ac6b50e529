"""Values of options: words and numbers. A message names the option as the user writes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ots_tunnel.errors import ConfigError

#: First version that no cell can have (docs/data-plane.md 2.2).
END_OF_VERSIONS = (2**63 - 1) // 1_000
#: Largest numbers of a request: of its fields, and of the one for the versions of a cell.
MAX_NUMBER, MAX_VERSIONS = 2**63 - 1, 2**31 - 1


def choice(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """An option that is one of some words; the first is the default.

    Raises:
        ConfigError: another word; names the option.
    """
    found = given.get(name.lower(), allowed[0])
    known = next((word for word in allowed if word.lower() == found.lower()), None)
    if known is None:
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {', '.join(allowed[:-1])} and {allowed[-1]}")
    return known


def number(given: Mapping[str, str], name: str, default: int, least: int, most: int = MAX_NUMBER) -> int:
    """An option that is a whole number.

    Raises:
        ConfigError: not a number, too small or too large; names the option.
    """
    found = given.get(name.lower(), str(default))
    # isascii: isdecimal is true for digits of other scripts, too
    if not (found.isascii() and found.isdecimal()):
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {least} and more")
    digits = found.lstrip("0") or "0"
    # the length first: int() refuses thousands of digits
    if len(digits) > len(str(most)) or int(digits) > most:
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {least} to {most}")
    if int(digits) < least:
        raise ConfigError(f"option {name!r}: found {found!r}, allowed are {least} and more")
    return int(digits)


def version_range(given: Mapping[str, str]) -> tuple[int, int] | None:
    """The versions between the options `startVersion` and `endVersion`; None where neither is given.

    Raises:
        ConfigError: not a number, or an empty range; names the option.
    """
    if "startversion" not in given and "endversion" not in given:
        return None
    start = number(given, "startVersion", 0, 0, END_OF_VERSIONS - 1)
    return start, number(given, "endVersion", END_OF_VERSIONS, start + 1, END_OF_VERSIONS)
