"""The C files that output is made of: templates with few placeholders, and the runtime part, which is C as it stands.

render("link.c", header="fmha.h", ...)           templates/link.c with its ${placeholders} filled
runtime_source("status.c", "grid.c")             their text for one emitted file
comment_text("'a*/b'")                           what may stand in a comment
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from string import Template

_TEMPLATES = Path(__file__).parent / "templates"
_RUNTIME = Path(__file__).parent / "runtime"
_COMMENT_WIDTH = 104
_DEFINITION = re.compile(r"^(?:pub )?(?:(?:import|def|class|const|type|struct|fn) (\w+)|(\w+) =)", re.MULTILINE)


def render(template: str, /, **values: object) -> str:
    """A template with every placeholder filled; a KeyError is a defect of the caller."""
    return Template((_TEMPLATES / template).read_text()).substitute(values)


def defined_names(template: str) -> frozenset[str]:
    """What a template for Python or Rust defines at its outermost level."""
    text = (_TEMPLATES / template).read_text()
    return frozenset(match[1] or match[2] for match in _DEFINITION.finditer(text))


def runtime_source(*names: str) -> str:
    """The text of runtime files, one after the other, without their includes of each other."""
    lines = [line for name in names for line in (_RUNTIME / name).read_text().splitlines(keepends=True)]
    return "".join(line for line in lines if not line.startswith('#include "'))


def comment_lines(text: str) -> str:
    """A sentence as further lines of a comment; nothing of nothing."""
    return "".join(f"\n   {line}" for line in textwrap.wrap(comment_text(text), _COMMENT_WIDTH))


def comment_text(text: str) -> str:
    """The text in one line, without what would begin or end a comment or be a trigraph."""
    return " ".join(text.split()).replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
