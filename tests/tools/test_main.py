"""The command `deuteron` itself: the list of its commands."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from deuteron.tools.main import main


def test_help_lists_each_command_that_there_is():
    text = CliRunner().invoke(main, ["--help"]).output
    listed = [line.split()[0] for line in text.partition("Commands:")[2].splitlines() if line]
    assert listed == main.list_commands(None)
    assert all(main.get_command(None, name).name == name for name in listed)


def test_help_imports_no_command():
    help = "main(['--help'], standalone_mode=False)"
    code = f"import sys\nfrom deuteron.tools.main import main\n{help}\nprint(*sys.modules, file=sys.stderr)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    assert {name for name in names if name.startswith("deuteron.tools.")} == {"deuteron.tools.main"}


def test_each_command_is_a_module_that_runs():
    for name in ("main", *main.list_commands(None)):
        words = [sys.executable, "-m", f"deuteron.tools.{name}", "--help"]
        assert "Usage: " in subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_word_that_is_no_command():
    result = CliRunner().invoke(main, ["compiel"])
    assert (
        result.exit_code == 2 and "No such command 'compiel'. Did you mean 'compile'? There are build," in result.stderr
    )


@pytest.mark.parametrize("command", ["cache ls", "run"])
def test_garbage_is_looked_for_at_the_end_of_programs_alone(tmp_path, command):
    program = tmp_path / "program.py"
    program.write_text("")
    words = [*command.split(), *([str(program)] if command == "run" else [])]
    at_end = "import atexit, gc, sys\natexit.register(lambda: print(gc.get_freeze_count(), file=sys.stderr))"
    code = f"{at_end}\nfrom deuteron.tools.main import main\nmain({words!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (int(done.stderr.split()[-1]) > 0) == (command != "run")
