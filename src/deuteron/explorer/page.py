"""One HTML file that shows explorations: no network, nothing beside it.

    page = Page((exploration,))              one kernel; of two, configurations or versions side by side
    page.save("matmul.html")                 or page.open(), in a browser; in a notebook it shows itself
    page.exploration.to_dict()               what it shows, as data

The style and the scripts in `page/` are put into it as they are, in the order below; the data as gzip in base64, which
browsers unpack themselves.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from deuteron.cached_property import cached_property
from deuteron.explorer.model import Exploration
from deuteron.whole_file import whole_file

_FOLDER = Path(__file__).parent / "page"
# Each uses what those before it define, and `main.js` begins.
SCRIPTS = (
    *("data.js", "highlight.js", "list.js", "links.js", "source.js", "stage.js", "report.js"),
    *("layouts.js", "tile.js", "layoutview.js", "pipeline.js", "loops.js", "main.js"),
)
_FRAME_HEIGHT = 820  # pixels, in a notebook


@dataclass(frozen=True)
class Page:
    """The page of one kernel, or of two that are compared."""

    explorations: tuple[Exploration, ...]

    @property
    def exploration(self) -> Exploration:
        """What is known of the kernel, of two of the first."""
        return self.explorations[0]

    @property
    def title(self) -> str:
        """The kernels and their targets."""
        return " and ".join(dict.fromkeys(f"{one.kernel} for {one.target}" for one in self.explorations))

    @cached_property
    def html(self) -> str:
        """The text of the file."""
        data = json.dumps([exploration.to_dict() for exploration in self.explorations], separators=(",", ":"))
        parts = {
            "title": html.escape(self.title),
            "style": _read("style.css"),
            "script": "\n".join(map(_read, SCRIPTS)),
            "data": base64.b64encode(gzip.compress(data.encode(), mtime=0)).decode(),
        }
        text = _read("page.html")
        for name, part in parts.items():
            text = text.replace("{{" + name + "}}", part, 1)
        return text

    def save(self, path: str | Path) -> Path:
        """Write the file."""
        with whole_file(Path(path)) as beside:
            beside.write_text(self.html, encoding="utf-8")
        return Path(path)

    def open(self) -> Path:
        """Show the page in the user's browser, from a temporary file, which is left to it."""
        folder = Path(tempfile.mkdtemp(prefix="deuteron-"))
        path = self.save(folder / f"{self.exploration.kernel}.html")
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        """The page within a notebook, in a frame of its own: it neither sees nor changes what is around it."""
        style = f"width:100%;height:{_FRAME_HEIGHT}px;border:1px solid #8884;border-radius:6px"
        return f'<iframe srcdoc="{html.escape(self.html)}" style="{style}" title="{html.escape(self.title)}"></iframe>'


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
