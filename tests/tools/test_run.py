"""`deuteron run`: a program sees what Python would show it; errors keep its lines and hide ours."""

import os
import subprocess
import sys

import pytest

DEUTERON_RUN = ("-c", "from deuteron.tools.main import main; main()", "run")


def run(tmp_path, source, *args, options=(), command=DEUTERON_RUN):
    (tmp_path / "program.py").write_text(source)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DEUTERON_CACHE_DIR": str(tmp_path / "cache")}
    return subprocess.run(
        [sys.executable, *command, *options, str(tmp_path / "program.py"), *args],
        capture_output=True,
        text=True,
        env=env,
    )


SHOW = """
import sys, neighbour
import __main__
print(__name__, __file__ == sys.argv[0], sys.argv[1:], __main__.neighbour is neighbour, "annotations" in globals())
"""


@pytest.mark.parametrize("args", [(), ("--size", "10", "-x", "--help"), ("--", "a b")])
def test_what_a_program_sees(tmp_path, args):
    (tmp_path / "neighbour.py").write_text("")
    ours = run(tmp_path, SHOW, *args)
    pythons = run(tmp_path, SHOW, *args, command=())
    assert ours.stdout == pythons.stdout != ""


def test_triton_is_deuteron(tmp_path):
    found = run(tmp_path, "import triton; print(triton.jit.__module__)")
    assert found.stdout == "deuteron.runtime.jit\n"


def test_interpret(tmp_path):
    source = "import triton; print(triton.knobs.runtime.interpret)"
    assert run(tmp_path, source, options=["--interpret"]).stdout == "True\n"
    assert run(tmp_path, source).stdout == "False\n"


@pytest.mark.parametrize(
    ("source", "code", "stderr"),
    [("import sys; sys.exit(7)", 7, ""), ("import sys; sys.exit('no')", 1, "no\n"), ("pass", 0, "")],
)
def test_exit_codes(tmp_path, source, code, stderr):
    found = run(tmp_path, source)
    assert (found.returncode, found.stderr) == (code, stderr)


FAILING = """
def inner():
    return {}["key"]

inner()
"""


@pytest.mark.parametrize("source", [FAILING, "def f(:", "assert False, 'no'", "import nothing_of_this_name"])
def test_a_traceback_is_that_of_python(tmp_path, source):
    ours, pythons = run(tmp_path, source), run(tmp_path, source, command=())
    assert ours.returncode == pythons.returncode == 1
    assert ours.stderr == pythons.stderr


def test_an_error_of_ours_is_a_message_with_the_line_of_the_program(tmp_path):
    source = "import triton\n\n@triton.jit\ndef kernel(x):\n    pass\n\nkernel[(1, 2, 3, 4)](5)\n"
    found = run(tmp_path, source)
    assert found.returncode == 1 and "Traceback" not in found.stderr
    lines = found.stderr.splitlines()
    assert lines[0] == "error: the grid of kernel 'kernel' must have one to three extents, got (1, 2, 3, 4)"
    assert lines[1:] == [f"  at {tmp_path}/program.py:7: kernel[(1, 2, 3, 4)](5)"]


def test_the_line_is_the_innermost_of_the_program(tmp_path):
    source = "import triton\n\ndef f():\n    raise triton.TritonError('no')\n\ntriton.testing.do_bench(lambda: f())\n"
    assert run(tmp_path, source).stderr.splitlines() == [
        "error: no",
        f"  at {tmp_path}/program.py:4: raise triton.TritonError('no')",
    ]


def test_an_error_of_the_compile_has_no_line_of_the_standard_library(tmp_path):
    source = "import triton\n\n@triton.jit\ndef kernel(x):\n    x + 'text'\n\nkernel[(1,)](5)\n"
    assert run(tmp_path, source).stderr.splitlines()[-1] == f"  at {tmp_path}/program.py:7: kernel[(1,)](5)"


def test_an_error_in_a_kernel_is_shown_at_its_line(tmp_path):
    source = "import triton\n\n@triton.jit\ndef kernel(x):\n    y = x + undefined_name\n\nkernel[(1,)](5)\n"
    found = run(tmp_path, source)
    assert found.returncode == 1 and "Traceback" not in found.stderr
    assert f"{tmp_path}/program.py:5:" in found.stderr and "undefined_name" in found.stderr


def test_a_file_that_is_not_there(tmp_path):
    found = subprocess.run([sys.executable, *DEUTERON_RUN, str(tmp_path / "none.py")], capture_output=True, text=True)
    assert found.returncode == 1 and "Traceback" not in found.stderr
    assert f"cannot read '{tmp_path}/none.py': No such file or directory" in found.stderr


def test_a_module_is_no_file():
    found = subprocess.run([sys.executable, *DEUTERON_RUN, "-m", "package.program"], capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr == "error: run takes the file of a program, not -m and the name of a module\n"


def test_a_misspelt_option():
    found = subprocess.run([sys.executable, *DEUTERON_RUN, "--emulat", "a.py"], capture_output=True, text=True)
    assert found.returncode == 1 and "Did you mean '--emulate'?" in found.stderr


def test_one_way_to_run_kernels(tmp_path):
    found = run(tmp_path, "pass", options=["--interpret", "--emulate"])
    assert found.returncode == 2 and "say one of them" in found.stderr
