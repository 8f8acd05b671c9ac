"""Layouts are printed once, by name; text with and without names is the same module."""

import re

import numpy as np
from backend.cuda.launching import compile_for
from ir_text import generic_asm, generic_text

import deuteron
import deuteron.language as tl
from deuteron.ir.text import parse_module


@deuteron.jit
def add(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


def test_a_layout_is_written_out_once():
    x = np.zeros(256, np.float32)
    kernel = compile_for("cuda:90", add, x, x, x, N=256)
    text = generic_asm(kernel, "ttgir")
    assert text.startswith("#linear = #ttg.linear<{register = ")
    assert text.count("#ttg.linear<") == len(set(re.findall(r"^#linear\d*(?= =)", text, re.MULTILINE)))
    assert "tensor<256xf32, #linear>" in text
    assert "#" not in re.sub(r"#arith\.\w+", "", generic_asm(kernel, "ttir"))


def test_text_with_names_is_the_module_without():
    x = np.zeros(256, np.float32)
    text = generic_asm(compile_for("cuda:90", add, x, x, x, N=256), "ttgir")
    names = dict(re.findall(r"^(#\w+) = (.*)$", text, re.MULTILINE))
    body = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    spelled_out = re.sub(r"#(?:linear|shared|smem)\d*\b", lambda match: names[match[0]], body)
    assert generic_text(parse_module(spelled_out)) == text
