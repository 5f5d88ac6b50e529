"""The option `where`: conditions on the key, joined by AND. Pure.

    carrier = 'c01' AND flight BETWEEN 7 AND 99
    carrier IN ('c01', 'c02') AND 7 < flight

A condition compares a name, in backquotes where needed, with whole numbers, text in single quotes (a quote in it is
written twice), or binaries as X'00ff': by =, <, <=, >, >=, IN, BETWEEN, and LIKE 'text%'.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ots_tunnel.errors import ConfigError
from ots_tunnel.spark.reader.key_filters import Condition

_TOKEN = re.compile(
    r"\s*(?:(?P<binary>[xX]'(?:[0-9a-fA-F]{2})*')|(?P<text>'(?:[^']|'')*')|(?P<number>-?[0-9]+)"
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|=|<|>|\(|\)|,))"
)
_OPERATORS: Final = {
    "=": "EqualTo",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
}
_REVERSED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: Most characters of a number, more than any key has: `int` refuses thousands of digits.
MAX_DIGITS: Final = 100


def parse_where(text: str) -> tuple[Condition, ...]:
    """The conditions of a text; none of an empty one.

    Raises:
        ConfigError: the text is not such a list; shows where.
    """
    return _Parser(text).conditions() if text.strip() else ()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def conditions(self) -> tuple[Condition, ...]:
        found = self._condition()
        while self._at < len(self._text.rstrip()):
            self._word("AND")
            found += self._condition()
        return tuple(found)

    def _condition(self) -> list[Condition]:
        kind, token = self._next()
        if kind in ("number", "text", "binary"):
            sign = self._sign()
            return [Condition(self._name(*self._next()), _OPERATORS[_REVERSED[sign]], self._value(kind, token))]
        name = self._name(kind, token)
        kind, token = self._next()
        if token in _OPERATORS:
            return [Condition(name, _OPERATORS[token], self._value(*self._next()))]
        match token.upper() if kind == "word" else "":
            case "IN":
                return [Condition(name, "In", self._list())]
            case "BETWEEN":
                low = Condition(name, "GreaterThanOrEqual", self._value(*self._next()))
                self._word("AND")
                return [low, Condition(name, "LessThanOrEqual", self._value(*self._next()))]
            case "LIKE":
                return [Condition(name, "StringStartsWith", self._prefix(self._value(*self._next())))]
            case _:
                raise self._wrong()

    def _list(self) -> tuple[Any, ...]:
        values, sign = [], self._next()[1]
        if sign != "(":
            raise self._wrong()
        while sign != ")":
            values.append(self._value(*self._next()))
            sign = self._next()[1]
            if sign not in (",", ")"):
                raise self._wrong()
        return tuple(values)

    def _prefix(self, pattern: Any) -> str:
        if not isinstance(pattern, str) or not pattern.endswith("%") or re.search(r"[%_\\]", pattern[:-1]):
            raise self._wrong()
        return pattern[:-1]

    def _sign(self) -> str:
        sign = self._next()[1]
        if sign not in _OPERATORS:
            raise self._wrong()
        return sign

    def _word(self, expected: str) -> None:
        kind, token = self._next()
        if kind != "word" or token.upper() != expected:
            raise self._wrong()

    def _name(self, kind: str, token: str) -> str:
        if kind == "quoted":
            return token[1:-1].replace("``", "`")
        if kind != "word":
            raise self._wrong()
        return token

    def _value(self, kind: str, token: str) -> int | str | bytes:
        match kind:
            case "number" if len(token) <= MAX_DIGITS:
                return int(token)
            case "text":
                return token[1:-1].replace("''", "'")
            case "binary":
                return bytes.fromhex(token[2:-1])
            case _:
                raise self._wrong()

    def _next(self) -> tuple[str, str]:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            raise self._wrong()
        self._at = found.end()
        return found.lastgroup, found[found.lastgroup]

    def _wrong(self) -> ConfigError:
        read = self._text[: self._at]
        return ConfigError(
            f"option 'where': found {self._text!r}, not understood behind {read!r}, allowed are conditions on the key "
            "such as carrier = 'c01' AND flight > 7"
        )
