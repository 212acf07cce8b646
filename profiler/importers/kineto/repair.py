"""Text that is almost JSON made JSON: what writers are known to get wrong, and nothing that was valid."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Each looks at a piece of text once or a few times, however long its digits and whatever is not closed.
_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*"'
    rb"|(?<![\w.\"])[-+]?(?:nan(?:\([^)]{0,40}\))?|inf(?:inity)?)(?![\w\"])"
    rb"|[-+]?1\.#[a-z]+\d*"
    rb"|(?<!\d)-?\d++(?:\.\d++)?e\+?\d{3,}", re.DOTALL | re.IGNORECASE)
_VALUE = re.compile(rb'((?<!\\)"\s*:\s*)[-+]?(?:nan(?:\([^)]{0,40}\))?|inf(?:inity)?|1\.#[a-z]+\d*)'
                    rb"(?=\s*[,}])", re.IGNORECASE)
_SUSPECT = re.compile(rb'[\x00-\x1f]|\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})|\\u[dD][89a-fA-F]')
_BAD_ESCAPE = re.compile(rb'(?<!\\)(?:\\\\)*\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BACKSLASH = re.compile(rb'\\(["\\])|\\')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_SURROGATE = re.compile(rb"(\\u[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
                        rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_ENDING = re.compile(rb'\\"(?=\s*[,}\]])')


@dataclass
class Repaired:
    """`text` may still be no JSON."""

    text: bytes
    repaired: int = 0  # texts that were changed
    missing: int = 0   # numbers that are none and became null


def repair(text: bytes) -> Repaired:
    """Mend bad UTF-8, control characters, lone backslashes and surrogates in texts, and nan, inf and 1e400.

    In a text with an escape that JSON does not know every backslash was meant as one:
    "C:\\new\\users" is a path, not a line break.
    """
    result = Repaired(text)
    try:
        text.decode()
    except UnicodeDecodeError:
        whole = text.decode("utf-8", "replace")
        result.repaired += whole.count("\ufffd")
        text = whole.encode()

    def mend(match: re.Match[bytes]) -> bytes:
        token = match.group()
        if token[:1] != b'"':
            if token[-1:].isdigit() and b"#" not in token and abs(float(token)) != float("inf"):
                return token
            result.missing += 1
            return b"null"
        if not _SUSPECT.search(token):
            return token
        fixed = _BACKSLASH.sub(_doubled, token) if _BAD_ESCAPE.search(token) else token
        fixed = _SURROGATE.sub(lambda m: m.group(1) or b"\\ufffd", fixed)
        fixed = _CONTROL.sub(lambda m: b"\\u%04x" % m.group()[0], fixed)
        result.repaired += fixed != token
        return fixed

    result.text = _TOKEN.sub(mend, text)
    return result


def repair_numbers(text: bytes) -> Repaired:
    """Only what is infinite or no number where a value stands: a search over text of any length."""
    mended, missing = _VALUE.subn(rb"\1null", text)
    return Repaired(mended, missing=missing)


def repair_endings(text: bytes) -> Repaired:
    """The same for one event with a text that ends in a lone backslash: "C:\\dir\\", which hides its end."""
    return repair(_ENDING.sub(rb'\\\\"', text))


def _doubled(match: re.Match[bytes]) -> bytes:
    return match.group() if match.group(1) else b"\\\\"
