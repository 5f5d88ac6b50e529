"""Regular expressions as instructions for the machine of `patterns`; pure.

What that machine cannot do - references back, looking around - is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

#: Most instructions and characters of one expression, and groups within each other.
STEPS: Final = 500
LENGTH: Final = 256
DEPTH: Final = 20
_Test = Callable[[str], bool]
_QUANTIFIERS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class PatternError(ValueError):
    """The expression is malformed, too large, or needs what is not offered; the text says which."""


class Step(NamedTuple):
    """One instruction: take a character, fork (first before second), note a place, or stand at an end; relative."""

    test: _Test | None = None
    forks: tuple[int, ...] = ()
    note: int | None = None
    at: str = ""


Code = list[Step]


def _word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


def _not(test: _Test) -> _Test:
    return lambda character: not test(character)


def _one(wanted: str) -> _Test:
    return lambda character: character == wanted


_CLASSES: Final[dict[str, _Test]] = {
    "d": lambda character: "0" <= character <= "9",
    "w": _word,
    "s": lambda character: character in " \t\n\r\f\v",
}
_CLASSES.update({name.upper(): _not(test) for name, test in list(_CLASSES.items())})
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


class _Parser:
    """Turns an expression into instructions; only the first group's place is noted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups = 0
        self._depth = 0

    def parse(self) -> Code:
        if len(self._text) > LENGTH:
            raise PatternError(f"longer than {LENGTH} characters")
        code = self._either()
        if self._at < len(self._text):
            raise PatternError(f"unmatched ')' at {self._at}")
        if len(code) > STEPS:
            raise PatternError(f"more than {STEPS} steps")
        return code

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        if self._at == len(self._text):
            raise PatternError("the expression ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _either(self) -> Code:
        code = self._sequence()
        if self._peek() != "|":
            return code
        self._at += 1
        other = self._either()
        return [Step(forks=(1, len(code) + 2)), *code, Step(forks=(len(other) + 1,)), *other]

    def _sequence(self) -> Code:
        code: Code = []
        while self._peek() not in ("", "|", ")"):
            code += self._repeated(self._atom())
            if len(code) > STEPS:
                raise PatternError(f"more than {STEPS} steps")
        return code

    def _repeated(self, code: Code) -> Code:
        mark = self._peek()
        if mark in _QUANTIFIERS:
            self._at += 1
            least, most = _QUANTIFIERS[mark]
        elif mark == "{":
            least, most = self._counts()
        else:
            return code
        lazy = self._peek() == "?"
        self._at += lazy
        if self._peek() and self._peek() in "*+?{":
            raise PatternError(f"multiple repeat at {self._at}")
        return _repeat(code, least, most, lazy)

    def _counts(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if end < 0 or not low.isdecimal() or (high and not high.isdecimal()) or max(len(low), len(high)) > 4:
            raise PatternError(f"bad count of repeats at {self._at}")
        self._at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else None
        if most is not None and most < least:
            raise PatternError(f"bad count of repeats at {end}")
        return least, most

    def _atom(self) -> Code:
        match self._take():
            case "(":
                return self._group()
            case "[":
                return [Step(test=self._set())]
            case ".":
                return [Step(test=lambda character: character != "\n")]
            case "^" | "$" as end:
                return [Step(at=end)]
            case "\\":
                return [Step(test=self._escape())]
            case mark if mark in "*+?{":
                raise PatternError(f"nothing to repeat at {self._at - 1}")
            case character:
                return [Step(test=_one(character))]

    def _group(self) -> Code:
        number = None
        if self._peek() == "?":
            if self._text[self._at : self._at + 2] != "?:":
                raise PatternError(f"(? at {self._at - 1} is not offered, only (?: is")
            self._at += 2
        else:
            number = self._groups
            self._groups += 1
        self._depth += 1
        if self._depth > DEPTH:
            raise PatternError(f"more than {DEPTH} groups within each other")
        code = self._either()
        if self._peek() != ")":
            raise PatternError("missing ')'")
        self._at += 1
        self._depth -= 1
        return code if number != 0 else [Step(note=2), *code, Step(note=3)]

    def _escape(self) -> _Test:
        character = self._take()
        if character in _CLASSES:
            return _CLASSES[character]
        if character in _CONTROLS:
            return _one(_CONTROLS[character])
        if character.isascii() and character.isalnum():
            raise PatternError(f"\\{character} at {self._at - 2} is not offered")
        return _one(character)

    def _set(self) -> _Test:
        inverted = self._peek() == "^"
        self._at += inverted
        tests: list[_Test] = []
        while self._peek() != "]" or not tests:
            tests.append(self._range())
        self._at += 1

        def inside(character: str) -> bool:
            return any(test(character) for test in tests) != inverted

        return inside

    def _range(self) -> _Test:
        low = self._take()
        if low == "\\":
            return self._escape()
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return _one(low)
        self._at += 1
        high = self._take()
        if high < low:
            raise PatternError(f"bad range {low}-{high}")
        return lambda character: low <= character <= high


def _repeat(code: Code, least: int, most: int | None, lazy: bool) -> Code:
    if len(code) * max(least, most or 0, 1) > STEPS:
        raise PatternError(f"more than {STEPS} steps")
    size = len(code)
    repeated = code * least
    if most is None:
        fork = (size + 2, 1) if lazy else (1, size + 2)
        return [*repeated, Step(forks=fork), *code, Step(forks=(-size - 1,))]
    for left in range(most - least, 0, -1):
        end = left * (size + 1)
        repeated += [Step(forks=(end, 1) if lazy else (1, end)), *code]
    return repeated


def compiled(expression: str) -> Code:
    """Turn an expression into instructions.

    Raises:
        PatternError: says why it cannot be used.
    """
    return _Parser(expression).parse()
