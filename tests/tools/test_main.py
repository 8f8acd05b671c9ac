"""The command `deuteron` itself: the list of its commands."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import deuteron
from deuteron.runtime.autotuning.tuned_file import Tuned
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


LONG = "x" * 300
REFUSED = {  # by the system, in places that look whether a file is there, or write
    "compile": ["compile", f"{LONG}.py", "-n", "add", "-s", "i32", "-g", "1", "-o", "add"],
    "link": ["link", f"{LONG}.h", "-o", "add"],
    "build": ["build", "-f", f"{LONG}.toml"],
    "show": ["tune", "show", LONG],
    "merge": ["tune", "merge", LONG, "tuned.json"],
}


@pytest.mark.parametrize("command", REFUSED.values(), ids=REFUSED)
def test_what_the_system_refuses_is_a_message(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuned.json").write_text(Tuned("add").to_json())
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ") and result.stderr.endswith("File name too long\n"), result.stderr


SHELL = """
PYTHONPATH={path}; export PYTHONPATH
deuteron() {{ "{python}" -m deuteron.tools.main "$@"; }}
cat > none.ttir <<EOF
module {{}}
EOF
deuteron opt none.ttir > /dev/full; echo $?
deuteron opt none.ttir >&-; echo $?
deuteron opt none.ttir 2>&- > /dev/null; echo $?
mkdir gone; cd gone; rmdir ../gone
deuteron cache size 2>&1; echo $?
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_no_output_and_no_folder(tmp_path: Path):
    path = Path(deuteron.__file__).parents[1]
    script = SHELL.format(path=path, python=sys.executable)
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == "error: No space left on device\n"
    gone = "error: the folder that this was started in is there no more: change to one that is"
    assert done.stdout.splitlines() == ["1", "0", "0", gone, "1"]


@pytest.mark.parametrize("command", ["cache ls", "run"])
def test_garbage_is_looked_for_at_the_end_of_programs_alone(tmp_path, command):
    program = tmp_path / "program.py"
    program.write_text("")
    words = [*command.split(), *([str(program)] if command == "run" else [])]
    at_end = "import atexit, gc, sys\natexit.register(lambda: print(gc.get_freeze_count(), file=sys.stderr))"
    code = f"{at_end}\nfrom deuteron.tools.main import main\nmain({words!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (int(done.stderr.split()[-1]) > 0) == (command != "run")
