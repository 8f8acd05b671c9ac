"""A warning as commands show it: a sentence, and a place where it is about a file of somebody else's.

warning_text(message, filename, lineno)     "the cache folder '/x' is not used ..."
                                            "/project/norms.py:3: invalid escape sequence"
"""

from __future__ import annotations

from pathlib import Path

from deuteron.toolchain import PACKAGE


def warning_text(message: Warning | str, filename: str, lineno: int) -> str:
    """Deuteron's own files are no places that one looks at; what they warn of says where it is."""
    text = str(message).removeprefix("Deuteron: ")
    return text if Path(filename).is_relative_to(PACKAGE) else f"{filename}:{lineno}: {text}"
