"""What LLVM allocates for the passes of a compile is freed with it."""

import os
import subprocess
import sys

import pytest

# In a process of its own: the option that kernels for NVIDIA's GPUs are compiled with takes 50 KB a compile.
PROGRAM = """
import gc, os
from deuteron.backend.llvm.compile import optimise
from deuteron.backend.llvm.targets import resolve_cpu

def kilobytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

def compile(count):
    for _ in range(count):
        optimise(llir, *resolve_cpu("native"))
    gc.collect()
    return kilobytes()

step = "%v{0} = load i32, ptr %p\\n%w{0} = add i32 %v{0}, {0}\\nstore i32 %w{0}, ptr %p\\n"
llir = "define void @k(ptr %p) {" + "".join(map(step.format, range(20))) + "ret void }"
before = compile(20)
print((compile(100) - before) / 100)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the size of a process is read from /proc")
def test_compiles_of_one_text_do_not_take_more_and_more_memory():
    kilobytes = float(subprocess.check_output([sys.executable, "-c", PROGRAM], timeout=100))
    assert kilobytes < 10  # 2; it was 50 of so short a text, 160 of a kernel
