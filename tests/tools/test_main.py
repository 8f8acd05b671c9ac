"""The command `deuteron` itself: the list of its commands."""

import importlib
import re
import signal
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


@pytest.mark.parametrize("group", ["cache", "tune"])
def test_help_of_a_group_has_a_whole_sentence_for_each_command(group):
    text = CliRunner().invoke(main, [group, "--help"]).output
    sentences = re.split(r"^  \w+ +", text.partition("Commands:\n")[2], flags=re.MULTILINE)[1:]
    assert sentences and all(sentence.rstrip().endswith(".") and "..." not in sentence for sentence in sentences)


def test_help_imports_no_command():
    help = "main(['--help'], standalone_mode=False)"
    code = f"import sys\nfrom deuteron.tools.main import main\n{help}\nprint(*sys.modules, file=sys.stderr)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()
    assert {name for name in names if name.startswith("deuteron.tools.")} == {
        "deuteron.tools.group",
        "deuteron.tools.main",
    }


def test_each_command_is_a_module_that_runs():
    for name in ("main", *main.list_commands(None)):
        words = [sys.executable, "-m", f"deuteron.tools.{name}", "--help"]
        assert "Usage: " in subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compiel"], "No such command 'compiel'. Did you mean 'compile'? There are build,"),
        (["cache", "list"], "No such command 'list'. Did you mean 'ls'? There are clear, export, import, ls, size."),
    ],
)
def test_a_word_that_is_no_command(words, message):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2 and message in result.stderr


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


TWICE = {  # the last one would hold, without a word
    "--target": ["compile", "add.py", "-n", "add", "-s", "i32", "-g", "1", "-t", "cpu", "--target", "cuda:90"],
    "--num-warps": ["inspect", "add.py", "-n", "add", "-s", "i32", "-w", "4", "-w", "4"],
    "--file": ["build", "-f", "one.toml", "-f", "other.toml"],
}


@pytest.mark.parametrize("option", TWICE)
def test_an_option_of_one_value_is_given_once(option: str):
    result = CliRunner().invoke(main, TWICE[option])
    assert result.exit_code == 2
    assert f"Error: '{option}' / '-" in result.stderr and "takes one value, and is given 2 times." in result.stderr


def test_options_of_many_values_and_flags_may_be_repeated(tmp_path: Path):
    command = ["build", "-q", "-q", "-t", "cpu", "-t", "cuda:90", "-f", str(tmp_path / "none.toml")]
    assert "declares the libraries" in CliRunner().invoke(main, command).stderr


READERS = (["inspect"], ["tune", "show"], ["warmup"], ["build", "-f"])


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_what_nests_too_deep_is_a_message(command: list[str], tmp_path: Path):
    path = tmp_path / ("deep.toml" if command[0] == "build" else "deep.json")
    path.write_text(("a = " if command[0] == "build" else "") + "[" * 100_000)
    result = CliRunner().invoke(main, [*command, str(path)])
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert ("nests too deep" in result.stderr) == (command != ["warmup"]), result.stderr


def test_ctrl_c_before_the_command_is_imported(monkeypatch: pytest.MonkeyPatch):
    def interrupt(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupt)
    result = CliRunner().invoke(main, ["build"])
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


SLEEPS = "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"


@pytest.mark.parametrize("command", ["compile", "run"])
def test_ctrl_c_is_an_exit_status_of_its_own(command: str, tmp_path: Path):
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    rest = ["-n", "add", "-s", "i32", "-g", "1"] if command == "compile" else []
    words = [sys.executable, "-m", "deuteron", command, "sleeps.py", *rest]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (said == "interrupted\n") if command == "compile" else said.endswith("KeyboardInterrupt\n")
