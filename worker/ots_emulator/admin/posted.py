"""The JSON object in the body of a posted control, and its values; whatever is wrong is refused by its name."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from ots_emulator.admin.state import Document
from ots_emulator.refusal import parameter_invalid


async def document_of(request: web.Request) -> Document:
    """Read the body of a request; an empty one is an object without values.

    Raises:
        Refusal: it is no JSON object, or has a list, an object or a text that is not UTF-8 in it.
    """
    try:
        document: Any = json.loads(await request.text() or "{}")
    except LookupError as error:
        raise parameter_invalid(f"Content-Type: found the charset {request.charset!r}, allowed is utf-8") from error
    except ValueError as error:
        # No JSON, or an integer of more digits than Python reads.
        raise parameter_invalid(f"body is no JSON: {error}") from error
    except RecursionError as error:
        raise parameter_invalid("body is JSON of too many levels") from error
    if not isinstance(document, dict):
        raise parameter_invalid("body is no JSON object")
    for name, value in document.items():
        _check(ascii(name)[1:-1], name)
        _check(name, value)
    return document


def _check(name: str, value: Any) -> None:
    if isinstance(value, dict | list):
        raise parameter_invalid(f"{name}: found {'an object' if isinstance(value, dict) else 'a list'}")
    # JSON can spell half a character ("\ud800"), which neither an answer nor a data directory can hold.
    if isinstance(value, str) and not _is_utf8(value):
        raise parameter_invalid(f"{name}: found {value!a}, which is no text in UTF-8")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_in(document: Document, name: str) -> str:
    """Return a text.

    Raises:
        Refusal: it is missing, or something else.
    """
    value = document.get(name)
    if not isinstance(value, str):
        raise parameter_invalid(f"{name}: found {value!r}, a text is needed")
    return value


def optional_text_in(document: Document, name: str) -> str | None:
    """Return a text, None where it is missing or null.

    Raises:
        Refusal: it is something else.
    """
    return None if document.get(name) is None else text_in(document, name)


def number_in(document: Document, name: str) -> float:
    """Return a number.

    Raises:
        Refusal: it is missing, something else, or too large.
    """
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise parameter_invalid(f"{name}: found {value!r}, a number is needed")
    try:
        return float(value)
    except OverflowError as error:
        raise parameter_invalid(f"{name}: found a number of {len(str(value))} digits, which is too large") from error


def check_range(name: str, value: float, least: float, most: float) -> None:
    """Refuse a number out of its range.

    Raises:
        Refusal: it is, or it is NaN or infinite, which Python reads although JSON does not have them.
    """
    if not least <= value <= most:
        raise parameter_invalid(f"{name}: found {value}, allowed is a number from {least} to {most}")
