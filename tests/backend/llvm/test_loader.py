"""Objects load wherever in the address space there is room for them."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

# Leaves two holes that are more than 2 GiB apart: one of a page, above one of many.
SCARCE = """
    import ctypes, mmap
    from deuteron.backend.llvm.compile import emit_object
    from deuteron.backend.llvm.loader import load_object

    data = emit_object('''
    @table = private constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0]
    define double @pick(i64 %i) {
      %p = getelementptr double, ptr @table, i64 %i
      %x = load double, ptr %p
      ret double %x
    }''', "x86-64-v3", "")
    assert load_object(data, ["pick"]).address("pick")  # what is only made once is made

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    RESERVED, FAILED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, ctypes.c_void_p(-1).value

    def reserve(size):
        address = libc.mmap(None, size, 0, RESERVED, -1, 0)
        return None if address == FAILED else address

    around = reserve(6 << 30)
    size = 1 << 46
    while size >= mmap.PAGESIZE:
        if reserve(size) is None:
            size >>= 1
    libc.munmap(around + (5 << 30), mmap.PAGESIZE)
    libc.munmap(around, 1 << 20)

    loaded = load_object(data, ["pick"])
    address = loaded.address("pick")
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(address)(2) == 3.0
    assert around <= address < around + (1 << 20), hex(address - around)
    print("loaded")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reserves the address space as Linux does")
def test_code_and_constants_are_near_each_other_however_scarce_the_address_space_is():
    """Where each section had memory of its own, a large process was ended by an offset of more than 32 bits."""
    script = textwrap.dedent(SCARCE)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "loaded\n", (ran.returncode, ran.stderr)
