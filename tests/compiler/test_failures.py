"""A compile that does not end as it should: by an interrupt, or because LLVM ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from deuteron.backend.stage import Made, Stage
from deuteron.compiler import IRSource
from deuteron.compiler.driver import compile_with
from deuteron.options import Target

TARGET = Target("fake", 0)


def test_an_interrupted_compile_leaves_nothing_and_the_next_one_is_whole(backend, tmp_path):
    stages, interrupts = backend.stages, [KeyboardInterrupt()]

    def interrupted(product, unit):
        if interrupts:
            raise interrupts.pop()
        return Made(product.encode())

    backend.stages = (*stages[:-1], Stage("three", "two", interrupted))
    source = IRSource.from_text("add it", "one")
    with pytest.raises(KeyboardInterrupt):
        compile_with(backend, source, TARGET, backend.make_options({}))
    assert list((tmp_path / "cache").rglob("*.*")) == []
    assert not compile_with(backend, source, TARGET, backend.make_options({})).is_cached
    assert compile_with(backend, source, TARGET, backend.make_options({})).is_cached


PROGRAM = """
import numpy as np
import deuteron
import deuteron.language as tl

@deuteron.jit
def fine(out):
    tl.store(out, 1)

@deuteron.jit
def fatal(out):
    tl.store(out, 2)

def launched(kernel):
    out = np.zeros(1, np.int32)
    kernel[(1,)](out)
    return out[0]
"""
# What LLVM does at a failed assertion, for one kernel; in every process that has this on its path.
ABORTING = """
import os
import deuteron.backend.llvm.compile as compile
emit = compile.emit_object
compile.emit_object = lambda llir, *rest: os.abort() if "@fatal" in llir else emit(llir, *rest)
"""
SLOW = """
import time
import deuteron.backend.llvm.compile as compile
emit = compile.emit_object
def slowly(llir, *rest):
    if "@fatal" in llir:
        print("compiling", flush=True)
        time.sleep(60)
    return emit(llir, *rest)
compile.emit_object = slowly
"""


@pytest.fixture
def start(tmp_path):
    def start(program, customization, **variables):
        (tmp_path / "sitecustomize.py").write_text(customization)
        (tmp_path / "program.py").write_text(PROGRAM + program)
        path = os.pathsep.join([str(tmp_path), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, "DEUTERON_TARGET": "cpu", **variables}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([sys.executable, str(tmp_path / "program.py")], env=environment, **pipes)

    return start


def test_a_process_that_llvm_ends_says_what_it_compiled(start):
    process = start("print(launched(fine), flush=True)\nlaunched(fatal)", ABORTING)
    output, errors = process.communicate()
    assert process.returncode == -signal.SIGABRT and output == "1\n", errors
    assert "Deuteron compiles kernel 'fatal' for cpu:native, stage 'obj'; what is cached stays whole" in errors
    process = start("print(launched(fine))\nprint(deuteron.recompiles()[0].is_cached)", ABORTING)
    assert process.communicate()[0] == "1\nTrue\n"


def test_in_a_process_of_its_own_it_is_an_exception(start):
    process = start(
        "for kernel in (fine, fatal, fine):\n"
        "    kernel.device_caches.clear()\n"
        "    try:\n"
        "        print(launched(kernel))\n"
        "    except deuteron.errors.CompilerDied as error:\n"
        "        print(error)\n",
        ABORTING,
        DEUTERON_ISOLATE="1",
        DEUTERON_ALWAYS_COMPILE="1",
    )
    output, errors = process.communicate()
    first, died, last = output.splitlines()
    assert (process.returncode, first, last) == (0, "1", "1"), errors
    assert died.startswith("kernel 'fatal' for cpu:native: the compiler's process ended with SIGABRT. It worked on ")
    assert died.endswith(" This is a defect of Deuteron or of LLVM: please report it")


@pytest.mark.parametrize("isolate", ["0", "1"])
def test_ctrl_c_while_a_kernel_compiles(start, isolate):
    program = (
        "try:\n"
        "    print('begin', flush=True)\n"
        "    launched(fatal)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', launched(fine))\n"
    )
    process = start(program, SLOW, DEUTERON_ISOLATE=isolate)
    assert process.stdout.readline() == "begin\n"
    if isolate == "0":
        assert process.stdout.readline() == "compiling\n"
    else:
        time.sleep(3)  # it says so in a process of its own
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "interrupted 1\n"), errors
