"""Forms of a secret under which it is found in a text, whichever of them the text has; pure."""

from __future__ import annotations

from urllib.parse import unquote, unquote_to_bytes

#: Bytes of a key from which on it may be a secret: a shorter one is a part of many words.
LEAST_SECRET = 4
_AS_TYPED = bytes.maketrans(b"\t\n\r+", b"    ")


def secret_forms(secret: str) -> set[bytes]:
    """A secret as `Readings.without` looks for it, also without the escapes that an address needs.

    What is shorter than `LEAST_SECRET` is left out.
    """
    texts, escaped = {secret}, unquote(secret)
    while escaped not in texts:
        texts.add(escaped)
        escaped = unquote(escaped)
    # base64 without its padding, and a parameter that is a key and has no value
    texts |= {text.rstrip("=") for text in texts}
    # upper and lower case of other letters than a to z; and pairs of surrogates, as JSON has them
    cases = {each for text in texts for each in (text, text.lower(), text.upper())}
    forms = {each.encode(errors="surrogatepass") for text in cases for each in (text, _in_surrogates(text))}
    # octets that are no UTF-8
    forms.add(unquote_to_bytes(secret))
    return {folded(form) for form in forms if len(form) >= LEAST_SECRET}


def _in_surrogates(text: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(int.from_bytes(units[each : each + 2], "little")) for each in range(0, len(units), 2))


def folded(text: bytes) -> bytes:
    """Text in which upper and lower case of a to z are equal, and so are blanks and plus signs."""
    return text.lower().translate(_AS_TYPED)
