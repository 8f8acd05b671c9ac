r"""Texts as C writes them.

c_string('"relu"')        "\042relu\042"
"""

from __future__ import annotations


def c_string(text: str) -> str:
    """A string literal of C, of ASCII characters that no trigraph can be in."""
    return '"' + "".join(_c_char(byte) for byte in text.encode()) + '"'


def _c_char(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
