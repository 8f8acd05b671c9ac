"""`check` runs passes on a kernel and compares the text with its `CHECK` lines.

check([Fold()], "%x: i32", '''
    // CHECK-NOT: arith.addi
    // CHECK:     "tt.print"(%x)
    %z = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %r = "arith.addi"(%x, %z) : (i32, i32) -> i32
    use %r : i32''')
"""

from __future__ import annotations

import pytest
from ir_text import generic_text, parse_kernel, run_filecheck
from xdsl.dialects.builtin import ModuleOp

from deuteron.ir.verifier import verify_ir
from deuteron.passes import run_passes


@pytest.fixture(name="parse_kernel")
def parse_kernel_fixture():
    """parse_kernel(parameters, body) -> module."""
    return parse_kernel


@pytest.fixture
def check():
    """Run passes on the kernel with these parameters and this body, and compare."""

    def run(passes, parameters: str, body: str, functions: str = "", locations: bool = False, **layouts) -> ModuleOp:
        module = parse_kernel(parameters, body, functions, **layouts)
        run_passes(module, passes, verify=verify_ir)
        run_filecheck(generic_text(module, locations), body)
        return module

    return run
