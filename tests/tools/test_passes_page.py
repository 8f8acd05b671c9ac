"""docs/passes.md has a line for every pass, as `deuteron opt --list` says it."""

from pathlib import Path

from deuteron.passes.by_name import known_passes, options_of
from deuteron.passes.optimisation import Optimisation
from deuteron.tools.opt import summary

PAGE = Path(__file__).parents[2] / "docs" / "passes.md"


def row(one) -> str:
    pipeline = one.__module__.split(".")[2]
    options = ", ".join(f"`{option.name}`" for option in options_of(one))
    return (
        f"| `{one.name}` | {pipeline} | {options} | {'' if issubclass(one, Optimisation) else 'yes'} | {summary(one)} |"
    )


def test_the_table_is_that_of_the_passes():
    expected = [row(one) for _, one in sorted(known_passes().items())]
    found = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert found == expected, "the table in docs/passes.md is to be:\n" + "\n".join(expected)
