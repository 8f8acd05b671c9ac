"""docs/glossary.md names places in the code that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_the_glossary_names_is_there():
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    named = [path for row in rows for path in re.findall(r"`([a-z_0-9]+/[a-z_0-9/.]*)`", row.split("|")[3])]
    assert named and not [path for path in named if not (ROOT / "src" / "deuteron" / path).exists()]
